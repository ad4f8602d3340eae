# `gpuidx query`: what is found, how it is printed, and what is said when nothing is.
load cli

setup_file() { build_tiny; }

@test "people see rank, score, id, title, snippet, matches and time" {
    ask query -q --engine=cpu "$TINY" 'skipping blocks pruning'
    exits 0
    silent
    is_golden human.txt
}

@test "matched words are marked on a terminal" {
    ask query -q --engine=cpu --color=always "$TINY" 'escape twins'
    exits 0
    is_golden human-color.txt
}

@test "no control character of a document reaches the output" {
    for format in human jsonl; do
        ask query -q --engine=cpu --format=$format "$TINY" 'control escape bell'
        exits 0
        says d11
        [[ $output != *$'\033'* && $output != *$'\007'* && $output != *$'\302\233'* ]]
    done
}

@test "a query may be several arguments" {
    ask query -q --engine=cpu "$TINY" skipping blocks pruning
    is_golden human.txt
}

@test "trec, tsv, csv and jsonl are printed for programs" {
    for format in trec tsv csv jsonl; do
        ask query -q --engine=cpu --format=$format --run-tag=mine -k 3 "$TINY" 'comma quote "tabs" compression'
        exits 0
        silent
        is_golden answer.$format
    done
}

@test "jsonl is JSON, a line a query, and its scores are the explained sums" {
    printf '%s\n' 'compression' 'twins gpu' '"\ quoted' '' $'bad \xff\xfe bytes' >queries
    status=0
    "$GPUIDX" query -q --engine=cpu --format=jsonl --explain "$TINY" <queries >answers
    python3 - answers <<'END'
import json, sys
answers = [json.loads(line) for line in open(sys.argv[1], encoding="utf-8")]
assert [a["qid"] for a in answers] == ["1", "2", "3", "4", "5"], answers
assert all(a["schema"] == 1 for a in answers)
assert answers[4]["query"] == "bad \u00ff\u00fe bytes"
assert answers[3]["hits"] == [] and answers[3]["matches"] == 0
seen = 0
for a in answers:
    assert a["matches"] >= len(a["hits"])
    for rank, hit in enumerate(a["hits"], 1):
        e = hit["explain"]
        assert hit["rank"] == rank
        assert sum(t["impact"] for t in e["terms"]) == e["sum"]
        assert hit["score"] == float("%.11g" % (e["sum"] * 2.0 ** -e["exponent"])), hit
        seen += 1
assert seen > 5
END
}

@test "explanations show the formula and its numbers" {
    ask query -q --engine=cpu -k 1 --explain "$TINY" 'compression compression block unheardof'
    exits 0
    is_golden explain.txt
    ask query -q --engine=cpu -k 1 --explain --scorer=bm25:pisa --k1=1.5 --b=0.5 "$TINY" 'compression gpu'
    is_golden explain-pisa.txt
    ask query -q --engine=cpu -k 1 --explain --scorer=bm25:lucene-lossy "$TINY" 'pruning'
    is_golden explain-lossy.txt
    ask query -q --engine=cpu -k 1 --explain --scorer=impact "$TINY" 'compression compression block unheardof'
    exits 0
    is_golden explain-impact.txt
}

@test "the scorer impact has no k1 and no b" {
    ask query -q --scorer=impact --k1=1.2 "$TINY" 'gpu'
    exits 2
    complains 'the scorer impact has no k1 and no b'
}

@test "each scorer gives its own scores" {
    for scorer in bm25 bm25:lucene bm25:pisa bm25:atire bm25:robertson bm25:lucene-lossy impact; do
        echo "$scorer"
        "$GPUIDX" query -q --engine=cpu -f trec -k 5 --scorer=$scorer "$TINY" 'gpu block lists compression'
    done >.stdout
    is_golden scorers.txt
}

@test "or, and, and-or" {
    ask query -q --engine=cpu -f tsv --op=and "$TINY" 'gpu lists'
    is_golden op-and.tsv
    ask query -q --engine=cpu -f tsv --op=or "$TINY" 'gpu lists'
    is_golden op-or.tsv
    ask query -q --engine=cpu -f tsv --op=and-or -k 2 "$TINY" 'gpu lists'
    [ "$output" = "$("$GPUIDX" query -q --engine=cpu -f tsv --op=and -k 2 "$TINY" 'gpu lists')" ]
    ask query -q --engine=cpu -f tsv --op=and-or -k 10 "$TINY" 'gpu lists'
    [ "$output" = "$(cat "$HERE/golden/op-or.tsv")" ]
    ask query -q --engine=cpu -f tsv --op=and "$TINY" 'gpu unheardof'
    exits 0
    [ -z "$output" ]
}

@test "equal scores are ordered by docid, whatever k" {
    for k in 1 2 3; do
        ask query -q --engine=cpu -f tsv -k $k "$TINY" twins
        [ "$output" = "$(printf '1\td0%d\t%d\n' 5 1 6 2 7 3 | head -n $k)" ]
    done
}

@test "k may be greater than the number of documents" {
    ask query -q --engine=cpu -f tsv -k 4294967295 "$TINY" 'gpu twins'
    exits 0
    [ "$(wc -l <.stdout)" -eq 8 ]
}

@test "flags of algorithms that have no effect beside one another are told, and change no answer" {
    ask query -q --engine=cpu -f trec "$TINY" 'merge find'
    answer=$output
    while read -r told flags; do
        ask query --engine=cpu -f trec $flags "$TINY" 'merge find'
        exits 0
        complains "${told//./ }"
        [ "$output" = "$answer" ] || [[ $flags == *--op=and* ]]
    done <<'END'
--recursion.means.something.to.--algorithm=pmf.alone --recursion=2
--recursion.means.something.to.--algorithm=pmf.alone --recursion=2 --algorithm=taat
--recursion.means.something.to.AND.alone --recursion=2 --algorithm=pmf
--algorithm=pmf.means.nothing.beside.--prune=off --prune=off --algorithm=pmf
--algorithm=taat.means.nothing.beside.--prune=off --prune=off --algorithm=taat
--algorithm=block-max.means.something.to.OR.alone --op=and --algorithm=block-max
--resident.means.something.to.a.GPU.alone --resident=10%
END
    for flags in '--recursion=2 --algorithm=pmf --op=and' --algorithm=pmf --prune=off \
        '--algorithm=block-max --op=and-or'; do
        ask query --engine=cpu -f trec $flags "$TINY" 'merge find'
        exits 0
        [[ $stderr != *means* ]]
    done
}

@test "pruning does not change the answer" {
    for query in 'gpu block lists' 'compression' 'the engine of a query'; do
        ask query -q --engine=cpu -f trec --prune=on "$TINY" "$query"
        pruned=$output
        ask query -q --engine=cpu -f trec --prune=off "$TINY" "$query"
        [ "$output" = "$pruned" ]
        for algorithm in pmf taat block-max daat; do
            ask query -q --engine=cpu -f trec --algorithm=$algorithm --recursion=2 "$TINY" "$query"
            [ "$output" = "$pruned" ]
        done
    done
}

@test "queries come from standard input, a line each" {
    printf '\xef\xbb\xbfgpu\r\n\nq7\ttwins\nlast line without end' >queries
    "$GPUIDX" query -q --engine=cpu -f trec -k 2 "$TINY" <queries >.stdout
    is_golden lines.trec
    "$GPUIDX" query -q --engine=cpu -k 2 "$TINY" <queries >.stdout
    is_golden lines.txt
}

@test "an answer is there before the next query is asked" {
    mkfifo in out
    "$GPUIDX" query -q --engine=cpu -f tsv -k 1 "$TINY" <in >out &
    exec 7>in 8<out
    for word in twins skipping; do
        echo $word >&7
        read -r -t 60 answer <&8
        [[ $answer == *d0* ]]
    done
    exec 7>&- 8<&-
    wait $!
}

@test "people are told why nothing was found" {
    ask query --engine=cpu "$TINY" 'the of and ... !'
    exits 0
    complains 'nothing is left of the query after analysis'
    ask query --engine=cpu "$TINY" 'unheardof'
    exits 0
    complains "'unheardof' occurs in no document"
    ask query -q --engine=cpu "$TINY" 'unheardof'
    silent
}

# What is asked for of the JSON object r that comes in.
members() {
    python3 -c "import json, sys; r = json.load(sys.stdin); print($1)"
}

@test "a query without words, and * alone, find all that filters leave, by docid" {
    "$GPUIDX" query --engine=cpu -f tsv -k 1000 "$TINY" '' | cut -f2 >all
    [ "$(wc -l <all)" -eq "$("$GPUIDX" info "$TINY" --json | members 'r["n_docs"]')" ]
    [ "$(head -1 all)" = d01 ]
    "$GPUIDX" query --engine=cpu -f tsv -k 1000 --syntax=boolean "$TINY" ' * ' | cut -f2 | cmp - all
    printf 'q1\t*\n' | "$GPUIDX" query --engine=cpu --syntax=boolean -f tsv -k 1000 "$TINY" | cut -f2 | cmp - all
    [ -z "$(printf 'q1\t\n\n' | "$GPUIDX" query -q --engine=cpu -f tsv "$TINY")" ]
    for op in or and and-or; do
        "$GPUIDX" query --engine=cpu --op=$op -f tsv -k 1000 "$TINY" ' ' | cut -f2 | cmp - all
    done
    sed -n 3,5p all >three
    "$GPUIDX" query --engine=cpu -f tsv -k 1000 --only=three "$TINY" '' | cut -f2 | cmp - three
    ask query --engine=cpu --syntax=boolean "$TINY" '* gpu'
    exits 2
    complains 'column 1: * stands alone, for all documents'
    ask query -q --engine=cpu -f jsonl "$TINY" ''
    [ "$(members 'r["hits"][0]["score"], r["matches"]' <<<"$output")" = "0 $(wc -l <all)" ]
}

@test "--fail-empty makes no result exit code 1" {
    for query in '...' 'the of' unheardof; do
        ask query -q --engine=cpu --fail-empty "$TINY" "$query"
        exits 1
        ask query -q --engine=cpu "$TINY" "$query"
        exits 0
    done
    ask query -q --engine=cpu --fail-empty "$TINY" gpu
    exits 0
}

@test "auto says once why it searches on the CPU, and only with -v" {
    "$GPUIDX" devices --require >/dev/null && skip "there is a GPU"
    printf '%s\n' gpu twins >queries
    "$GPUIDX" query -v "$TINY" <queries >/dev/null 2>err
    [ "$(grep -c 'searching on the CPU' err)" -eq 1 ]
    "$GPUIDX" query "$TINY" <queries >/dev/null 2>err
    [ "$(grep -c 'searching on the CPU' err)" -eq 0 ]
    ask query -q "$TINY" gpu
    silent
    ask query --engine=cpu "$TINY" gpu
    silent
}

@test "a GPU that is required and absent is exit code 7" {
    "$GPUIDX" devices --require >/dev/null && skip "there is a GPU"
    ask query --engine=gpu "$TINY" gpu
    exits 7
    [ -n "$stderr" ]
    [ -z "$output" ]
}

@test "a missing index, a folder, and a file that is none are told apart" {
    ask query missing.gx gpu
    exits 5
    complains missing.gx
    mkdir folder
    ask query folder gpu
    exits 5
    complains folder
    echo 'not an index' >text.gx
    ask query text.gx gpu
    exits 4
    complains text.gx
}

@test "a truncated and a changed index are refused" {
    head -c 5000 "$TINY" >short.gx
    ask query short.gx gpu
    exits 4
    cp "$TINY" changed.gx
    printf 'X' | dd of=changed.gx bs=1 seek=$(($(stat -c %s "$TINY") / 2)) conv=notrunc status=none
    cmp -s "$TINY" changed.gx && skip "the byte was an X"
    ask query changed.gx gpu
    exits 4
    complains changed.gx
}

@test "a query of 1,024 terms is answered, one of 1,025 is refused" {
    ask query -q --engine=cpu -f tsv "$TINY" "gpu $(seq -f 'w%g' 1 1023 | tr '\n' ' ')"
    exits 0
    says d20
    ask query -q --engine=cpu -f tsv "$TINY" "gpu $(seq -f 'w%g' 1 1024 | tr '\n' ' ')"
    exits 2
    complains 'more than 1024 different terms'
    seq -f 'w%g' 1 1025 | tr '\n' ' ' >wide
    { echo gpu; cat wide; } >queries
    status=0
    "$GPUIDX" query -q --engine=cpu -f tsv "$TINY" <queries >answers 2>said || status=$?
    [ "$status" -eq 3 ]
    grep -q 'standard input:2: the query has more than 1024' said
    grep -q "^1" answers
}

@test "a query of a megabyte is answered, a longer one is refused" {
    { head -c 1048568 /dev/zero | tr '\0' 'w'; printf ' gpu\n'; } >long
    "$GPUIDX" query -q --engine=cpu -f tsv "$TINY" <long >answers
    [ -s answers ]
    { echo gpu; head -c 1048577 /dev/zero | tr '\0' 'w'; } >longer
    status=0
    "$GPUIDX" query -q --engine=cpu -f tsv "$TINY" <longer >answers 2>said || status=$?
    [ "$status" -eq 3 ]
    grep -q 'standard input:2: a query of more than 1048576 bytes' said
}

@test "more results than documents are asked for: that is said, and all are given" {
    ask query --engine=cpu -f tsv -k 1000 "$TINY" gpu
    exits 0
    complains 'k is 1000: the index holds 21 documents'
    says d20
    ask query --engine=cpu -f tsv -k 0 "$TINY" gpu
    exits 2
}

@test "a format without a place for explanations refuses --explain" {
    ask query -q --engine=cpu -f trec --explain "$TINY" gpu
    exits 2
    complains 'the format trec has no place for it'
}

@test "a full disk is an error" {
    [ -w /dev/full ] || skip "there is no /dev/full"
    status=0
    "$GPUIDX" query -q --engine=cpu "$TINY" gpu >/dev/full 2>err || status=$?
    [ "$status" -eq 5 ]
    grep -q 'No space left' err
}

@test "a word that no document has is said beside the hits of the others" {
    ask query --engine=cpu "$TINY" 'merge nosuchword'
    exits 0
    says '1.'
    complains "'nosuchword' occurs in no document"
    ask query -q --engine=cpu "$TINY" 'merge nosuchword'
    exits 0
    silent
}

# ---- --filter ----

# Three documents of a word each, of the years 2001 to 2003.
build_years() {
    printf '{"id":"y%d","text":"word","year":%d,"cat":"c %d","price":%d.5}\n' 1 2001 1 1 2 2002 2 2 3 2003 3 3 \
        >years.jsonl
    printf '{"id":"none","text":"word"}\n' >>years.jsonl
    "$GPUIDX" build -q years.jsonl -o years.gx --attr=year:int,cat:keyword,price:float
}

@test "--filter says which documents may be results" {
    build_years
    [ "$(ids --filter 'year:[2002 TO 2003]' years.gx word)" = 'y2 y3 ' ]
    [ "$(ids --filter 'year:>2001 AND NOT price:>=3.5' years.gx word)" = 'y2 ' ]
    [ "$(ids --filter 'NOT has:year OR cat:"c 1"' years.gx word)" = 'none y1 ' ]
    [ "$(ids --filter year:1999 years.gx word)" = '' ]
    printf 'y1\ny3\n' >list
    [ "$(ids --filter 'id:@list AND year:>2001' years.gx word)" = 'y3 ' ]
    [ "$(ids --only=list --filter 'year:<2003' years.gx word)" = 'y1 ' ]
    [ "$(ids --filter 'id:y1 OR id:y3 OR id:y3 OR id:nobody' years.gx word)" = 'y1 y3 ' ]
    [ "$(ids --filter 'year:>2001 OR has:cat' --filter 'id:@list' --filter 'NOT id:y1' years.gx word)" = 'y3 ' ]
    [ "$(ids --not=list --filter 'has:year' years.gx word)" = 'y2 ' ]
    for op in or and and-or; do
        for way in --prune=off --algorithm={auto,pmf,taat,block-max,daat}; do
            [ "$(ids --op=$op $way --filter 'year:{2001 TO *]' years.gx word)" = 'y2 y3 ' ]
        done
    done
}

@test "a malformed filter is told by its column, and a missing file of ids" {
    build_years
    ask query --filter 'price:<2 AND yaer:2001' years.gx word
    exits 2
    complains "filter, column 14: the index has no attribute 'yaer'; did you mean year?"
    ask query --filter 'id:@nowhere' years.gx word
    exits 5
    complains 'cannot open nowhere, a file of document ids'
    head -c 3000000 /dev/zero >zeros
    ask query --filter 'id:@zeros' years.gx word
    exits 3
    complains 'zeros:1:'
    ask query --filter 'year:1' "$TINY" word
    exits 2
    complains "the index has no attribute 'year', nor any other"
    ask query --filter "$(printf '(%.0s' $(seq 10000))" years.gx word
    exits 2
    complains 'nest deeper than 64 levels'
}

# ---- --facet ----

@test "--facet counts all matches by an attribute, whatever -k is" {
    build_years
    printf '{"id":"y4","text":"word","year":2003,"cat":"c 3","price":0.25}\n{"id":"y5","text":"other","year":2003}\n' \
        >>years.jsonl
    "$GPUIDX" build -q years.jsonl -o years.gx --force --attr=year:int,cat:keyword,price:float
    ask query -q --engine=cpu -k 1 --facet=year:1 --facet=cat,price:width=2 years.gx word
    exits 0
    silent
    says 'year: 1 of 3 groups; 1 match without a value'
    says '            2  2003'
    says '            2  c 3'
    says 'price: 2 groups; 1 match without a value'
    says '            2  [0 TO 2}'
    says '            2  [2 TO 4}'
    says '5 matches'
    ask query -q --engine=cpu -k 1 --format=jsonl --facet=year:all,price:bins=2 --filter='year:>2001' years.gx word
    exits 0
    printf '%s\n' "$output" | python3 -c 'import json, sys
o = json.load(sys.stdin)
assert o["matches"] == 3 and len(o["hits"]) == 1, o
year, price = o["facets"]
assert (year["attribute"], year["type"], year["present"], year["missing"], year["n_groups"]) == ("year", "int", 3, 0, 2)
assert year["groups"] == [{"value": "2003", "from": 2003, "to": 2003, "count": 2},
                          {"value": "2002", "from": 2002, "to": 2002, "count": 1}], year
assert [(g["value"], g["from"], g["to"], g["count"]) for g in price["groups"]] == [
    ("[0.25 TO 1.875}", 0.25, 1.875, 1), ("[1.875 TO 3.5]", 1.875, 3.5, 2)], price'
    [ "$(ids --filter 'price:[0.25 TO 1.875}' years.gx word)" = 'y1 y4 ' ]
}

@test "--prior adds a number of each document to its score, which --explain shows" {
    build_years
    ask query -q --engine=cpu -k 2 --prior=price:w=100,form=linear --explain years.gx word
    exits 0
    says 'prior price: x = 3.5, 100 * x = '
    ask query -q --engine=cpu -k 1 --prior=year:w=2,form=sat,half=10 --explain -f jsonl years.gx word
    exits 0
    says '"prior":{"text":"year:w=2,form=sat,half=10","value":2003,'
    [ "$("$GPUIDX" query -q --engine=cpu -f tsv --prior=price:w=1 years.gx word | cut -f2 | xargs)" = 'y3 y2 y1 none' ]
    while IFS='|' read -r prior why; do
        ask query --engine=cpu --prior="$prior" years.gx word
        exits 2
        complains "$why"
    done <<'END'
prise|prior: the index has no attribute 'prise'; did you mean price?
cat:w=1|prior: cat is of type keyword; a prior is of an int or a float
price:w=0|'w=0' is no number above 0
price:w=nan|'w=nan' is no number above 0
price:w=-1|'w=-1' is no number above 0
price:form=cube|'form=cube' is none of form=log, sat, linear
price:half=0|'half=0' is no number above 0
price:x=1|'x=1' is none of w=, form=, half=
price:|'' is none of w=, form=, half=
:w=1|begins with no name
END
    page() { "$GPUIDX" query -q --engine=cpu -f tsv --prior=price:w=1 "$@" years.gx word | cut -f2 | xargs; }
    [ "$(page --offset=1 -k 2)" = 'y2 y1' ]
    ask query -q --engine=cpu -f jsonl --prior=price:w=1 --cursor -k 1 years.gx word
    exits 0
    says '"id":"y3"'
    cursor=$(grep -oE '"cursor":"[^"]+' <<<"$output" | cut -d'"' -f4)
    [ "$(page --after="$cursor")" = 'y2 y1 none' ]
    ask query --engine=cpu --prior=price:w=2 --after="$cursor" years.gx word
    exits 2
    complains 'of another query'
    ask query --engine=cpu --prior=prise --sort=year years.gx word
    exits 2
    complains 'did you mean price?'
    ask query --engine=cpu --prior=price --approximate=0.5 years.gx word
    exits 2
    complains 'leave out approximate'
}

@test "--sums and figures of facets are of all matches" {
    build_years
    printf '{"id":"y4","text":"word","year":2003,"cat":"c 3","price":0.1}\n{"id":"y5","text":"other","year":2003}\n' \
        >>years.jsonl
    "$GPUIDX" build -q years.jsonl -o years.gx --force --attr=year:int,cat:keyword,price:float
    ask query -q --engine=cpu -k 1 --sums=year --sums=price:sum:p50 --facet=cat:1:max=price/year years.gx word
    exits 0
    silent
    says 'year: 4 values, min 2001, max 2003, sum 8009, avg 2002.25'
    says '                 price: 2 values, max 3.5'
    ask query -q --engine=cpu -k 1 --sums=year:avg:p0 -f jsonl years.gx nowhere
    exits 0
    says '"sums":{"year":{"n":0,"avg":null,"percentiles":{"0":null}}}'
    ask query -q --engine=cpu -k 1 --facet=cat:exclude-own --filter='cat:"c 3" AND year:>2001' -f jsonl years.gx word
    exits 0
    printf '%s\n' "$output" | python3 -c 'import json, sys
o = json.load(sys.stdin)
assert o["matches"] < sum(g["count"] for g in o["facets"][0]["groups"]), o'
}

@test "figures that an attribute has not are refused" {
    build_years
    while IFS='|' read -r flag why; do
        ask query --engine=cpu "$flag" years.gx word
        exits 2
        complains "$why"
    done <<'END'
--sums=yaer|sums: the index has no attribute 'yaer'; did you mean year?
--sums=cat|cat is of type keyword and has no figures
--sums=year:mean|'mean' is none of min, max, sum, avg, distinct, stats and a percentile such as p50
--sums=year:p101|'p101' is no percentile
--sums=year:p-1|'p-1' is no percentile
--sums=year:pnan|'pnan' is none of
--sums=year:p50.1234567|up to 6 decimal places
--sums=:avg|begins with no name
--facet=cat:sum=cat|cat is of type keyword and has no figures
--facet=cat/year/year|a facet has one inner facet
--facet=cat/year:sum=year|an inner facet counts
--facet=year:quantiles=0|quantiles=0 is no number from 1 to 4096
--facet=cat:quantiles=2|cat is of type keyword and has no bins
--facet=cat:sum=|names no attribute
END
    ask query --engine=cpu --sums=year --format=trec years.gx word
    exits 2
    complains '--sums: the format trec has no place for counts'
    ask query --engine=cpu --facet=cat:exclude-own --filter='cat:a OR year:2001' years.gx word
    exits 2
    complains 'cannot be left out'
}

@test "facets of unknown attributes, and in formats without a place for them, are refused" {
    build_years
    ask query --engine=cpu --facet=yaer years.gx word
    exits 2
    complains "facet: the index has no attribute 'yaer'; did you mean year?"
    ask query --engine=cpu --facet=cat:bins=3 years.gx word
    exits 2
    complains 'cat is of type keyword and has no bins'
    ask query --engine=cpu --facet=year --format=trec years.gx word
    exits 2
    complains '--facet: the format trec has no place for counts'
    ask query --engine=cpu --facet=year "$TINY" word
    exits 2
    complains "the index has no attribute 'year', nor any other"
}

# ---- --only and --not ----

ids() { # of a query's results, in the order of their names
    "$GPUIDX" query -q --engine=cpu --format=tsv -k 100 "$@" | cut -f2 | sort | tr '\n' ' '
}

@test "--only and --not say which documents may be results" {
    all=$(ids "$TINY" compression)
    [ "$(wc -w <<<"$all")" -gt 3 ]
    first=${all%% *}
    rest=${all#* }
    echo "$first" >one
    [ "$(ids --only=one "$TINY" compression)" = "$first " ]
    [ "$(ids --not=one "$TINY" compression)" = "$rest" ]
    [ "$(ids --only=one --not=one "$TINY" compression)" = '' ]
    tr ' ' '\n' <<<"$all" >every
    [ "$(ids --only=every "$TINY" compression)" = "$all" ]
    [ "$(ids --only=every --not=one "$TINY" compression)" = "$rest" ]
    for op in or and and-or; do
        for way in --prune=off --algorithm={auto,pmf,taat,block-max,daat}; do
            [ "$(ids --op=$op $way --not=one "$TINY" compression)" = "$rest" ]
        done
    done
}

@test "matches are counted among the documents that may be results" {
    ask query -q --engine=cpu --format=jsonl "$TINY" compression
    before=$(grep -o '"matches":[0-9]*' <<<"$output")
    ids "$TINY" compression | cut -d' ' -f1 >one
    ask query -q --engine=cpu --format=jsonl --not=one "$TINY" compression
    [ "$(grep -o '"matches":[0-9]*' <<<"$output")" = "\"matches\":$((${before#*:} - 1))" ]
}

@test "a file of ids may have blank lines, carriage returns and a byte order mark, or be empty" {
    printf '\xef\xbb\xbf d02\r\n\r\n\t\nd05 \n\nd02' >list
    [ "$(ids --only=list "$TINY" skipping twins)" = 'd02 d05 ' ]
    : >empty
    [ "$(ids --only=empty "$TINY" skipping twins)" = '' ]
    [ "$(ids --not=empty "$TINY" skipping twins)" = "$(ids "$TINY" skipping twins)" ]
}

@test "ids that the index does not have are told, and lines that are no ids refused" {
    printf '%s\n' d02 no-such-document d05 neither >list
    ask query --engine=cpu --only=list --format=tsv "$TINY" skipping twins
    exits 0
    complains 'list: 2 of 4 ids are not in the index, the first in line 2: no-such-document'
    [ "$(cut -f2 <<<"$output" | sort | tr '\n' ' ')" = 'd02 d05 ' ]
    printf '%s\n' d02 'd05 d07' >list
    ask query --engine=cpu --not=list "$TINY" skipping
    exits 3
    complains "list:2: 'd05 d07' is no document id"
    ask query --engine=cpu --not=missing "$TINY" skipping
    [ "$status" -ne 0 ]
    complains 'cannot open missing'
    ask query --engine=cpu --only=. "$TINY" skipping
    [ "$status" -ne 0 ]
    complains 'cannot read .'
}

@test "the boolean syntax requires, excludes, groups and weighs" {
    ask query -q --engine=cpu --format=trec "$TINY" --syntax=boolean '+skipping blocks'
    exits 0
    [ -n "$output" ]
    required=$output
    ask query -q --engine=cpu --format=trec "$TINY" --syntax=boolean 'skipping AND (blocks OR skipping)'
    [ "$(cut -d' ' -f3 <<<"$output" | sort)" = "$(cut -d' ' -f3 <<<"$required" | sort)" ]
    ask query -q --engine=cpu --format=trec "$TINY" --syntax=boolean 'blocks skipping -skipping'
    exits 0
    for id in $(cut -d' ' -f3 <<<"$required"); do
        [[ $output != *" $id "* ]]
    done
    ask query -q --engine=cpu --format=trec "$TINY" 'blocks blocks skipping'
    twice=$output
    ask query -q --engine=cpu --format=trec "$TINY" --syntax=boolean 'blocks^2 skipping'
    [ "$output" = "$twice" ]
    ask query -q --engine=cpu --explain "$TINY" --syntax=boolean 'blocks^2.5 -skipping'
    says 'times 2.5 in the query'
}

@test "a mistake in a boolean query is told with its column" {
    ask query -q --engine=cpu "$TINY" --syntax=boolean 'a "two words"'
    exits 2
    complains 'column 3: phrases need positions, which this index lacks; build it with --positions'
    ask query -q --engine=cpu "$TINY" --syntax=boolean 'blocks AND'
    exits 2
    complains 'column 11: a word or ( is expected, and the query ends'
    ask query -q --engine=cpu "$TINY" --syntax=boolean -- '-blocks'
    exits 2
    complains 'column 1: the query only excludes'
    ask query -q --engine=cpu --op=and-or "$TINY" --syntax=boolean 'blocks (skipping OR pruning)'
    exits 2
    complains 'column 8: only words side by side'
    printf 'blocks\n(blocks\n' >queries
    ask query -q --engine=cpu "$TINY" --syntax=boolean <queries
    exits 3
    complains 'standard input:2: column 1: this ( is not closed'
}

@test "a replay reads the boolean syntax and verifies it" {
    printf '1\tblocks -skipping\n2\t+skipping blocks^3\n' >queries
    ask replay -q --engine=cpu --syntax=boolean --verify=1 --run=run "$TINY" queries
    exits 0
    [ -s run ]
    printf '1\tblocks title:x\n' >queries
    ask replay -q --engine=cpu --syntax=boolean "$TINY" queries
    exits 3
    complains "queries:1: column 8: the index has no attribute 'title', nor any other (fields cannot be searched"
}

@test "conditions stand in boolean queries where words may" {
    build_years
    bool() { ids --syntax=boolean "$@"; }
    [ "$(bool years.gx 'word AND year:[2002 TO 2003]')" = 'y2 y3 ' ]
    [ "$(bool years.gx '+word +year:>2001 -price:>=3.5')" = 'y2 ' ]
    [ "$(bool years.gx '+word -has:year')" = 'none ' ]
    [ "$(bool years.gx '(word AND year:2001) OR (word AND cat:"c 1" AND NOT year:2001)')" = "$(ids --filter \
        'year:2001 OR cat:"c 1"' years.gx word)" ]
    [ "$(bool --filter 'year:<2003' years.gx 'word AND year:>2001')" = 'y2 ' ]
    printf 'y1\ny3\n' >list
    [ "$(bool years.gx 'word AND id:@list AND NOT id:y1')" = 'y3 ' ]
    [ "$(bool years.gx 'nowhere OR year:2002')" = 'y2 ' ]
    ask query -q --engine=cpu --syntax=boolean --facet=year:all years.gx 'year:>2001'
    exits 0
    says ' 0.0000  y2'
    says '2 matches'
    [[ $output != *'nothing is left'* ]]
    ask query -q --engine=cpu --syntax=boolean --explain years.gx '+year:2002 word'
    says 'sum of impacts'
    run "$GPUIDX" query -q --engine=cpu --syntax=boolean -f tsv years.gx <<<$'word AND year:2002\nyear:2003 AND word'
    [ "$(cut -f2 <<<"$output" | tr '\n' ' ')" = 'y2 y3 ' ]
}

@test "mistakes in the conditions of boolean queries are told with their column" {
    build_years
    for case in "word AND yaer:2001|column 10: the index has no attribute 'yaer'; did you mean year?" \
        'word year:two|column 11: year is of type int' 'word year:[2001|column 16: TO is expected' \
        'year:2001^2|column 10: a condition adds nothing to the score' '-year:2001|column 1: the query only excludes' \
        'title:word|column 1: the index has no attribute '; do
        ask query -q --engine=cpu --syntax=boolean years.gx -- "${case%%|*}"
        exits 2
        complains "${case#*|}"
    done
    ask query -q --engine=cpu --syntax=boolean years.gx 'word AND id:@nowhere'
    complains 'cannot open nowhere, a file of document ids'
    ask query -q --engine=cpu --syntax=boolean --op=and-or years.gx 'word year:2001'
    exits 2
    complains 'column 6: only words side by side'
    ask query -q --engine=cpu --syntax=boolean years.gx "$(printf '(year:1 OR %.0s' $(seq 10000))"
    exits 2
    complains 'nested deeper than 64 levels'
}

@test "a replay answers conditions in boolean queries, and verifies them" {
    build_years
    printf 'y1\ny3\n' >list
    printf '%s\n' '1	word AND year:>2001' '2	word OR price:<1' '3	cat:c' '4	+id:@list word' \
        '5	(word AND has:cat) OR id:y2' '6	word AND id:@nowhere' >queries
    ask replay -q --engine=cpu --syntax=boolean --verify=1 --on-error=skip --allow-id-files --run=run years.gx queries
    exits 0
    complains 'queries:6: cannot open nowhere'
    [ "$(grep -c '^4 ' run)" -eq 2 ]
    [ "$(awk '$1 == 1 {print $3}' run | tr '\n' ' ')" = "$(ids --filter 'year:>2001' years.gx word)" ]
}

@test "queries that are not UTF-8 are read as Latin-1, as replay reads them, and that is told" {
    printf '{"id":"1","text":"caf\\u00e9"}\n' >c.jsonl
    "$GPUIDX" build -q c.jsonl -o c.gx
    printf 'caf\351\n' >log
    status=0
    "$GPUIDX" query c.gx -f tsv <log >out 2>err || status=$?
    [ "$status" -eq 0 ]
    [ "$(cat out)" = "$(printf '1\t1\t1')" ]
    grep -q 'standard input:1: this line is not UTF-8; it is read as Latin-1' err
}

@test "an empty id, an id with white space and an empty tag would break a run, and are refused" {
    for line in '\tall' 'a b\tall'; do
        status=0
        printf "$line\n" | "$GPUIDX" query "$TINY" -f trec >out 2>err || status=$?
        [ "$status" -eq 3 ]
        [ ! -s out ]
        grep -q 'standard input:1: .* id' err
    done
    ask query --run-tag= -f trec "$TINY" all
    exits 2
    complains 'neither empty nor has white space'
}

@test "a line that cannot be answered is passed over, and told where its answer would stand" {
    {
        printf '1\tgpu\n'
        printf 'a b\tgpu\n'                         # white space in the id
        printf '\tgpu\n'                            # an empty one
        seq -f 'w%g' 1 1025 | tr '\n' ' '; echo     # too many terms
        head -c 1048580 /dev/zero | tr '\0' 'w'; echo
        printf '6\t+twins AND AND (\n'              # malformed in boolean syntax alone
        printf '7\ttwins\n'
    } >queries
    for syntax in plain boolean; do
        ask query --engine=cpu -f jsonl --syntax=$syntax --on-error=skip "$TINY" <queries
        exits 0
        python3 -c '
import json, sys
answers = [json.loads(line) for line in sys.stdin]
assert len(answers) == 7, len(answers)
bad = [a["qid"] for a in answers if "error" in a]
assert bad == ["2", "3", "4", "5"] + (["6"] if sys.argv[1] == "boolean" else []), bad
assert all("hits" not in a and a["error"] for a in answers if "error" in a)
assert answers[-1]["qid"] == "7" and len(answers[-1]["hits"]) == 3, answers[-1]' $syntax <.stdout
        complains 'standard input:2: white space in the query'
        complains 'standard input:4: the query has more than 1024'
        complains 'standard input:5: a query of more than 1048576 bytes'
        complains '; skipped'
    done
    ask query -q --engine=cpu -f tsv --on-error=skip "$TINY" <queries
    exits 0
    [ "$(cut -f1 .stdout | uniq | tr '\n' ' ')" = '1 6 7 ' ]
    ask query -q --engine=cpu -f tsv "$TINY" <queries
    exits 3
    # what is not the query's fault ends the program
    ask query -q --engine=cpu --on-error=skip missing.gx <queries
    exits 5
}

@test "a query has a deadline, which no processor keeps that is a nanosecond" {
    for more in '' '--facet=category' '--rm3'; do
        ask query --engine=cpu "$TINY" $more --deadline=0.000001 'merge posting lists'
        [[ $stderr == *'no attribute'* ]] || exits 9
    done
    complains 'the query took longer than the 1e-06 ms of --deadline'
    printf '1\tmerge lists\n2\tgpu\n' >two
    ask query --engine=cpu -f jsonl "$TINY" --deadline=0.000001 --on-error=skip <two
    exits 0
    [ "$(grep -c '"error":"the query took longer' .stdout)" = 2 ]
    ask query --engine=hybrid -f tsv "$TINY" --deadline=0.000001 <two
    exits 9
    ask query --engine=cpu -f tsv "$TINY" --deadline=1e9 <two
    exits 0
    cp .stdout within
    ask query --engine=cpu -f tsv "$TINY" <two
    cmp within .stdout
    ask query --engine=cpu "$TINY" --deadline=0 gpu
    exits 2
}

@test "a program that runs sees the commits of a collection, and keeps a file that is replaced" {
    printf '{"id":"a","text":"apple"}\n' >a.jsonl
    printf '{"id":"b","text":"apple"}\n' >b.jsonl
    "$GPUIDX" build -q a.jsonl -o a.gx
    "$GPUIDX" build -q b.jsonl -o b.gx
    "$GPUIDX" collect -q a.gx -o c
    for path in c a.gx; do
        mkfifo ask.$path answers.$path
        "$GPUIDX" query -q --engine=cpu -f tsv $path <ask.$path >answers.$path 3>&- &
        exec 8>ask.$path 9<answers.$path
        echo apple >&8
        read -r -u 9 line
        [ "$line" = "1	a	1" ]
        if [ $path = c ]; then
            "$GPUIDX" add -q c b.jsonl
            want='2	a	1 2	b	2'
        else
            mv b.gx a.gx
            want='2	a	1'
        fi
        echo apple >&8
        exec 8>&-
        [ "$(paste -sd ' ' <&9)" = "$want" ]
        exec 9<&-
        wait
    done
}

@test "flags of a GPU or of both engines are told where they mean nothing" {
    printf '1\tmerge find\n' >log
    printf '1 0 d02 1\n' >qrels
    for command in "query $TINY gpu" "replay $TINY log" "sweep $TINY log qrels"; do
        ask $command --engine=cpu --resident=25% --warm=log
        complains '--resident, --warm mean something to a GPU alone, and the CPU searches'
    done
    ask query "$TINY" --engine=cpu --linger=5 gpu
    exits 0
    complains '--linger means something to a GPU alone'
    for flag in device=1 devices=all device-memory=1G residency-policy=static; do
        ask query "$TINY" --engine=cpu --$flag gpu
        exits 0
        complains "--${flag%%=*} means something to a GPU alone"
    done
    ask replay "$TINY" log --engine=cpu --cpu-threads=2
    exits 0
    complains '--cpu-threads means something to --engine=hybrid alone'
    ask query "$TINY" --engine=cpu gpu
    silent
}

@test "results come in an order by attributes, page by page" {
    for i in 1 2 3 4 5 6 7; do
        printf '{"id":"p%d","text":"shop word%d","price":%d,"brand":"b%d"}\n' $i $i $((i * 7 % 5)) $((i % 2))
    done >shop.jsonl
    printf '{"id":"none","text":"shop"}\n' >>shop.jsonl
    "$GPUIDX" build -q -o shop.gx shop.jsonl --attr price:int --attr brand:keyword
    order() {
        "$GPUIDX" query -q --engine=cpu -f tsv shop.gx "$@" | cut -f2 | tr '\n' ' '
    }
    [ "$(order shop --sort=price)" = 'p5 p3 p1 p6 p4 p2 p7 none ' ]
    [ "$(order '' --sort=price:desc,brand --filter=has:price)" = 'p2 p7 p4 p6 p1 p3 p5 ' ]
    [ "$(order '' --sort brand:desc:missing-first --sort price:asc -k 4)" = 'none p5 p3 p1 ' ]
    [ "$(order shop --sort=price --offset=3 -k 2)" = 'p6 p4 ' ]
    [ "$(order shop --sort=price --offset=8)" = '' ]
    [ "$("$GPUIDX" query -q --engine=cpu -f tsv shop.gx '' --sort=price --offset=3 -k 1)" = $'1\tp6\t4' ]
    ask query -q --engine=cpu -f jsonl shop.gx shop --sort=price --cursor -k 3
    next=$(members 'r["cursor"]' <<<"$output")
    ask query -q --engine=cpu -f jsonl shop.gx shop --sort=price --after="$next" -k 3
    [ "$(members '*(h["id"] + str(h["rank"]) for h in r["hits"])' <<<"$output")" = 'p64 p45 p26' ]
    ask query --engine=cpu shop.gx shop --sort=price --cursor -k 3
    complains "--after=$next"
    ask query -q --engine=cpu -f jsonl shop.gx shop --cursor -k 3
    by_score=$(members 'r["cursor"]' <<<"$output")
    [ "$(order shop --after="$by_score" -k 2)" = "$(order shop --offset=3 -k 2)" ]
    for query in '--sort=price word1' '--sort=price:desc shop' 'shop' '--sort=price --filter=price:1 shop'; do
        ask query --engine=cpu shop.gx --after="$next" $query
        exits 2
        complains 'another query, filter, scorer, prior or order'
    done
    ask query --engine=cpu "$TINY" gpu --after="$by_score"
    exits 2
    for bad in x "$next=" "${next}A" "${next:0:40}"; do
        ask query --engine=cpu shop.gx shop --sort=price --after="$bad"
        exits 2
        complains 'cursor'
    done
    ask query --engine=cpu shop.gx shop --sort=prise
    exits 2
    complains "no attribute 'prise'; did you mean price?"
    ask query --engine=cpu shop.gx shop --sort=price,price
    exits 2
    ask query --engine=cpu shop.gx shop --sort=price:down
    exits 2
    complains "'down' is none of asc, desc, missing-first, missing-last"
    ask query --engine=cpu shop.gx shop --sort=price:asc:desc
    exits 2
    ask query --engine=cpu shop.gx shop --sort=price, ''
    exits 2
    ask query --engine=cpu shop.gx shop --sort=price --approximate=0.5
    exits 2
}
