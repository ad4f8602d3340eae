# Attributes of several values a document: from arrays and columns, through filters and facets, into every copy.
load cli

# The ids that a filter selects, in order.
selected() { # INDEX FILTER
    "$GPUIDX" query -q --engine=cpu --format=jsonl -k 400 --filter "$2" "$1" word | grep -o '"id":"[^"]*"' |
        cut -d'"' -f4 | sort | tr -d '\n'
}

@test "numbers, dates and bools can have several values, and any of them meets a condition" {
    printf '%s\n' '{"id":"a","text":"word","year":[2019,2015,2019],"p":[1.5,-2,1.5],"day":["2020-01","2019-05-31"],
        "b":[0,1]}' '{"id":"b","text":"word","year":2017,"p":[],"day":null,"b":[null,true]}' \
        '{"id":"c","text":"word","year":[null],"p":[7],"day":["2019-06"]}' \
        '{"id":"d","text":"word","year":["2014",2021]}' | tr -d '\n' | sed 's/}{/}\n{/g' >c.jsonl
    {
        printf 'id\tyear\tp\tday\tb\ttext\na\t2019,2015,2019\t1.5, -2\t2020-01,2019-05-31\t0,1\tword\n'
        printf 'b\t2017\t\t\ttrue\tword\nc\t\t7\t2019-06\t\tword\nd\t2014,2021\t,\t\t\tword\n'
    } >c.tsv
    tr '\t' ';' <c.tsv | sed 's/[^;]*,[^;]*/"&"/g; s/;/,/g' >c.csv
    for file in c.jsonl c.tsv c.csv; do
        ask build -q $file -o x.gx --force --attr=year:int,p:float,day:date,b:bool
        exits 0
        silent
        ask check x.gx
        exits 0
        ask info x.gx
        says '5, 2014 to 2021'
        says '3, -2 to 7'
        says '3, 2019-05-31 to 2020-01-01'
        says '3, false and true'
        for row in 'year:2015=a' 'year:2019=a' 'year:[2016 TO 2018]=b' 'year:<2015=d' 'year:>2018=ad' \
            'year:>2015 AND year:<2019=abd' 'NOT year:>2018=bc' 'has:year=abd' 'NOT has:year=c' 'p:<0=a' \
            'p:[1 TO 9]=ac' 'day:2019=ac' 'day:2020=a' 'b:true=ab' 'b:false=a' 'NOT b:true=cd'; do
            [ "$(selected x.gx "${row%=*}")" = "${row##*=}" ] || { echo "$file: $row" >&2; return 1; }
        done
        ask query -q --engine=cpu --format=jsonl --facet=year:width=5,day:all:order=value,b:all,year:all x.gx word
        python3 -c 'import json, sys
facets = [{g["value"]: g["count"] for g in f["groups"]} for f in json.load(sys.stdin)["facets"]]
assert facets == [{"[2010 TO 2014]": 1, "[2015 TO 2019]": 2, "[2020 TO 2024]": 1}, {"2019": 2, "2020": 1},
                  {"true": 2, "false": 1}, dict.fromkeys(map(str, (2014, 2015, 2017, 2019, 2021)), 1)]' <<<"$output"
    done
}

@test "bad values in an array are told by line, and an array of nothing is no value" {
    printf '%s\n' '{"id":"a","text":"w","n":[1,"x"],"f":[1]}' '{"id":"b","text":"w","n":[1,[2]],"f":[1]}' \
        '{"id":"c","text":"w","n":[1.5],"f":[1]}' '{"id":"d","text":"w","n":[1],"f":["nan"]}' \
        '{"id":"e","text":"w","n":[1],"f":[1,NaN]}' '{"id":"f","text":"w","n":[1],"f":["inf",1]}' \
        '{"id":"g","text":"w","n":[1,2' '{"id":"h","text":"w","n":[1],"f":[1e999]}' \
        '{"id":"i","text":"w","n":[true],"f":[1]}' '{"id":"j","text":"w","n":[],"f":[null,[]]}' \
        '{"id":"k","text":"w","n":[],"f":[null]}' >c.jsonl
    ask build c.jsonl -o x.gx --attr=n:int,f:float
    exits 3
    complains "c.jsonl:1: the attribute n: 'x' is no whole number"
    [ ! -e x.gx ]
    ask build c.jsonl -o x.gx --attr=n:int,f:float --on-error=skip
    exits 0
    complains "c.jsonl:2: column 29: not JSON as expected: an attribute's value is"
    complains "c.jsonl:3: the attribute n: '1.5' is no whole number"
    complains "c.jsonl:4: the attribute f: 'nan' is no number"
    complains 'c.jsonl:5: column 37: not JSON as expected'
    complains "c.jsonl:6: the attribute f: 'inf' is no number"
    complains 'c.jsonl:7: '
    complains "c.jsonl:8: the attribute f: '1e999' is outside the range of a double"
    complains "c.jsonl:9: the attribute n: 'true' is no whole number"
    complains 'c.jsonl:10: column 39: not JSON as expected'
    ask info x.gx
    grep -Eq '^documents +1$' <<<"$output"
    grep -Eq '^f +float +0 ' <<<"$output"
    ask build -q c.jsonl -o y.gx --attr=n:keyword --on-error=skip
    complains 'c.jsonl:1: the attribute n has several values, which its type keyword does not take'
}

@test "a document can have 100,000 values" {
    python3 -c 'import json
many = [(i * 7919) % 100003 - 50000 for i in range(100000)]
print(json.dumps({"id": "a", "text": "word", "n": many, "f": [.5] * 100000}))
print(json.dumps({"id": "b", "text": "word", "n": 60000}))' >many.jsonl
    ask build -q many.jsonl -o y.gx --attr=n:int,f:float
    exits 0
    ask check y.gx
    exits 0
    ask info y.gx
    says '100001, -50000 to 60000'
    says '0.5 to 0.5'
    [ "$(selected y.gx 'n:-3 AND f:0.5')" = a ]
    [ "$(selected y.gx 'n:>50010')" = b ]
}

@test "several values stay when an index is recoded, reordered, exported, imported, collected and merged" {
    python3 - >c.jsonl <<'END'
import json, random
random.seed(8)
for i in range(400):
    d = {"id": f"d{i}", "text": "word some" if i % 3 else "word"}
    for name, draw in {"n": lambda: random.randrange(-40, 40), "x": lambda: random.choice([.1, -1e300, 5e-324, 3.25]),
                       "big": lambda: random.randrange(-2**63, 2**63), "b": lambda: random.random() < .5,
                       "day": lambda: f"{random.randrange(1990, 2030)}-0{random.randrange(1, 10)}"}.items():
        d[name] = [draw() for _ in range(random.randrange(4))]
    print(json.dumps(d))
END
    attr='--attr=n:int:bins=9:by=lloyd,x:float:bitmaps=equality,big:int,b:bool,day:date'
    rows() { "$GPUIDX" export "$1" --attributes=- | tail -n +2 | sort; }
    found() {
        for filter in 'n:[-5 TO 5]' 'x:<0' 'x:[0 TO 0.2] AND NOT n:>0' 'big:>0' 'b:true AND b:false' 'day:2001' \
            'NOT has:n'; do
            echo "$filter $(selected "$1" "$filter")"
        done
    }
    "$GPUIDX" build -q c.jsonl -o a.gx $attr
    rows a.gx >a.rows
    found a.gx >a.found
    python3 - <<'END'
import json
want = {}
for line in open("c.jsonl"):
    d = json.loads(line)
    want[d["id"]] = [sorted({f(v) for v in d[name]}) for name, f in
                     (("n", int), ("x", float), ("big", int), ("b", bool), ("day", str))]
read = (int, float, int, "true".__eq__, lambda text: text[:7])
for line in open("a.rows"):
    name, *fields = line.rstrip("\n").split("\t")
    got = [[f(v) for v in field.split(",") if v] for f, field in zip(read, fields)]
    assert got == want[name], (name, got, want[name])
assert len(want) == 400
END
    "$GPUIDX" recode -q a.gx -o recode.gx --codec=simple8b
    "$GPUIDX" reorder -q a.gx -o reorder.gx --order=random
    "$GPUIDX" export a.gx -o a.ciff --attributes=a.tsv
    "$GPUIDX" import -q a.ciff -o import.gx --attributes=a.tsv
    head -n 150 c.jsonl >1.jsonl
    tail -n +151 c.jsonl >2.jsonl
    for i in 1 2; do "$GPUIDX" build -q $i.jsonl -o $i.gx $attr; done
    "$GPUIDX" collect -q 1.gx -o folder
    "$GPUIDX" add -q folder 2.jsonl
    "$GPUIDX" collect -q 1.gx 2.gx -o merged
    "$GPUIDX" merge -q --policy=all merged
    for x in recode.gx reorder.gx import.gx folder merged; do
        ask check -q --level=full $x
        exits 0
        rows $x | cmp - a.rows
        found $x | cmp - a.found
    done
    [ "$(grep -c . a.found)" = 7 ]
    head -n 20 c.jsonl | sed 's/"n": \[[^]]*\]/"n": [77, 78]/' >u.jsonl
    ask update -q folder u.jsonl
    exits 0
    [ "$("$GPUIDX" query -q --engine=cpu --format=tsv -k 400 --filter n:78 folder word | wc -l)" = 20 ]
}
