# `gpuidx recode`, `reorder`, `import` and `export`: indexes become other indexes.
load cli

setup_file() { build_tiny; }

# What queries see of an index.
answers() {
    for query in 'merge find' 'posting lists' 'gpu'; do
        "$GPUIDX" query -q "$1" "$query" --engine=cpu --format=tsv -k 100 "${@:2}"
    done
}

@test "recode packs an index with every codec, and answers stay the same" {
    for codec in raw gpubp128 gpubp256 gpuvbyte128 gpuvbyte1024 gpupfd128 rice pfordelta auto; do
        ask recode "$TINY" -o $codec.gx --codec=$codec
        exits 0
        ask check -q $codec.gx
        exits 0
        diff <(answers "$TINY") <(answers $codec.gx)
    done
}

@test "recode chooses a codec for each list, and info tells which" {
    ask recode "$TINY" -o auto.gx --codec=auto --tf-codec=raw
    exits 0
    "$GPUIDX" info --json auto.gx >auto.json
    "$GPUIDX" info --json "$TINY" >tiny.json
    python3 -c 'import json
auto, tiny = json.load(open("auto.json")), json.load(open("tiny.json"))
assert sum(c["lists"] for c in auto["codings"] if c["tfs"] == "raw") == tiny["n_terms"]'
    ask recode "$TINY" -o auto256.gx --codec=auto --tf-codec=gpubp256
    exits 2
}

@test "recode leaves out titles and texts when asked to" {
    ask recode "$TINY" -o bare.gx --drop=title
    exits 0
    ask info bare.gx
    [[ $output != *TITL* && $output != *TEXT* ]]
    diff <(answers "$TINY") <(answers bare.gx)
}

@test "recode replaces nothing unasked, and knows its codecs" {
    cp "$TINY" there.gx
    ask recode "$TINY" -o there.gx
    exits 5
    complains 'there.gx exists'
    ask recode "$TINY" -o other.gx --codec=zip
    exits 2
    complains 'no codec is called "zip"'
    [ ! -e other.gx ]
    ask recode "$TINY"
    exits 2
}

# Scores and ids, ties by id.
found() {
    for query in 'merge find' 'posting lists' 'gpu'; do
        "$GPUIDX" query -q "$1" "$query" --engine=cpu --format=jsonl -k 100 |
            grep -o '"id":"[^"]*","score":[^,}]*' | sort
    done
}

@test "reorder gives documents new places, and queries find the same ones with the same scores" {
    [ "$(found "$TINY" | wc -l)" -gt 5 ]
    for order in bp random url keep; do
        ask reorder "$TINY" -o $order.gx --order=$order -j 2
        exits 0
        complains 'bits a posting: docids '
        complains 'seconds: order '
        ask check -q --level=full $order.gx
        exits 0
        diff <(found "$TINY") <(found $order.gx)
    done
    diff <(answers "$TINY") <(answers keep.gx)
}

@test "reorder keeps codecs unless told otherwise, and the seed decides a random order" {
    ask recode "$TINY" -o vbyte.gx --codec=gpuvbyte128 --tf-codec=gpubp128
    for i in 1 2; do
        ask reorder -q vbyte.gx -o $i.gx --order=random --seed=$i
        exits 0
        silent
        ask reorder -q vbyte.gx -o $i.again.gx --order=random --seed=$i
        ask export -q $i.gx -o $i
        ask export -q $i.again.gx -o $i.again
        cmp $i.documents $i.again.documents
        cmp $i.docs $i.again.docs
    done
    [ "$(cat 1.documents)" != "$(cat 2.documents)" ]
    diff <(sort 1.documents) <(sort 2.documents)
    ask info 1.gx
    says 'gpuvbyte128    gpubp128'
    ask reorder vbyte.gx -o raw.gx --codec=raw
    exits 0
    ask info raw.gx
    says 'raw            raw'
}

@test "reorder by url sorts the ids" {
    ask reorder "$TINY" -o url.gx --order=url
    ask export url.gx -o url
    exits 0
    LC_ALL=C sort -c url.documents
}

@test "reorder replaces nothing unasked" {
    cp "$TINY" there.gx
    ask reorder "$TINY" -o there.gx
    exits 5
    complains 'there.gx exists'
    cmp "$TINY" there.gx
    for what in reorder recode; do # an index may take its own place
        ask $what there.gx -o ./there.gx
        exits 5
        cmp "$TINY" there.gx
        cp "$TINY" itself.gx
        ask $what itself.gx -o ./itself.gx --force
        exits 0
        ! cmp -s "$TINY" itself.gx
        diff <(found "$TINY") <(found itself.gx)
        ask check itself.gx
        exits 0
    done
    ask reorder "$TINY" -o x.gx --order=bp --seed=3
    exits 2
    complains '--seed is of --order=random'
    [ ! -e x.gx ]
    ask reorder -q "$TINY" -o there.gx --force
    exits 0
    diff <(found "$TINY") <(found there.gx)
    ask reorder "$TINY"
    exits 2
    ask reorder "$TINY" -o x.gx --order=best
    exits 2
    ask reorder nothing.gx -o x.gx
    exits 5
    [ ! -e x.gx ]
}

@test "what export writes, import reads" {
    ask export "$TINY" -o x
    exits 0
    [ -s x.docs ] && [ -s x.freqs ] && [ -s x.sizes ] && [ -s x.terms ] && [ -s x.documents ]
    ask import x -o back.gx
    exits 0
    ask check back.gx
    exits 0
    says 'no damage found'
    diff <("$GPUIDX" query -q "$TINY" 'merge' --engine=cpu --format=tsv) \
        <("$GPUIDX" query -q back.gx 'merg' --engine=cpu --format=tsv)
}

@test "what generate writes, import reads, and its queries find" {
    ask generate -o g --documents=2000 --lists=64 --queries=50
    exits 0
    complains '2000 documents, 64 lists'
    [ "$(wc -l < g.queries)" -eq 50 ] && [ "$(wc -l < g.terms)" -eq 64 ] && [ "$(wc -l < g.documents)" -eq 2000 ]
    LC_ALL=C sort -c g.terms
    ask import g -o g.gx
    exits 0
    ask check g.gx
    exits 0
    ask replay g.gx g.queries --engine=cpu --op=or --verify
    exits 0
    ask generate -q -o h --documents=2000 --lists=64 --queries=50 -j 3
    exits 0
    silent
    cmp g.docs h.docs && cmp g.freqs h.freqs && cmp g.sizes h.sizes && cmp g.queries h.queries
    ask generate -q -o h --documents=2000 --lists=64 --queries=50 --density=2 --seed=2 --force
    exits 0
    [ "$(wc -c < h.docs)" -gt "$(wc -c < g.docs)" ]
    ask generate -o g --documents=2000
    exits 5
    complains 'g.queries exists'
    ask generate --documents=2000
    exits 2
    ask generate --help
    says '1,000 to 4,000,000,000'
    ask generate -o below --documents=999
    exits 2
    ask generate -o below --documents=1000 --lists=63
    exits 2
    ask generate -o below --documents=1000 --density=4
    exits 2
    [ -z "$(ls | grep below)" ]
}

@test "what export writes as CIFF, import reads, and it answers as before" {
    ask export "$TINY" -o x.ciff
    exits 0
    ask import x.ciff -o back.gx
    exits 0
    ask check back.gx
    exits 0
    for op in and or; do
        diff <("$GPUIDX" query -q "$TINY" 'merging lists of the index' --op=$op --engine=cpu --format=tsv) \
            <("$GPUIDX" query -q back.gx 'merging lists of the index' --op=$op --engine=cpu --format=tsv)
    done
    [ -n "$("$GPUIDX" query -q back.gx 'merging' --engine=cpu --format=tsv)" ]
    ask export back.gx -f ciff -o y
    exits 0
    cmp x.ciff y
    for file in x.ciff.gz x.ciff.xz; do
        if [ $file = x.ciff.gz ]; then gzip -c x.ciff >$file; else xz -c x.ciff >$file; fi
        ask import $file -o from-$file.gx
        exits 0
        "$GPUIDX" export -q from-$file.gx -o z --force -f ciff
        cmp x.ciff z
    done
    ask import - -o piped.gx <x.ciff
    exits 0
    ask import x.ciff -o plain.gx --analyzer=simple --stemmer=english
    exits 0
    ask info plain.gx
    says 'stemmed (english)'
}

holds_impacts() {
    "$GPUIDX" info --json "$1" | grep -q '"impacts": true'
}

# impacts_of BASE TERM: the term's documents with their impacts, of the exported files BASE.*, best first.
impacts_of() {
    python3 -c '
import struct, sys
base, term = sys.argv[1:]
names = open(base + ".documents").read().split("\n")
at = open(base + ".terms").read().split("\n").index(term)
def sequence(suffix, skip):
    data = open(base + suffix, "rb").read()
    numbers = struct.unpack("<%dI" % (len(data) // 4), data)
    i = 0
    for _ in range(skip):
        i += 1 + numbers[i]
    return numbers[i + 1:i + 1 + numbers[i]]
for d, impact in sorted(zip(sequence(".docs", at + 1), sequence(".freqs", at)), key=lambda x: (-x[1], x[0])):
    print(names[d], impact)' "$1" "$2"
}

@test "impacts are imported, told by info, and searched with the scorer impact" {
    ask export "$TINY" -o x
    ask import x -o i.gx --impacts
    exits 0
    ask check --level=full i.gx
    exits 0
    ask info i.gx
    says 'with impacts instead of term frequencies'
    holds_impacts i.gx
    ask info --json "$TINY"
    says '"impacts": false'
    diff <(impacts_of x merg) <("$GPUIDX" query -q i.gx merg --engine=cpu --format=trec -k 100 | cut -d' ' -f3,5)
    [ -n "$(impacts_of x merg)" ]
    for scorer in bm25 bm25:lucene-lossy; do
        ask query -q i.gx merg --scorer=$scorer
        exits 2
        complains "i.gx holds impacts instead of term frequencies, which the scorer $scorer needs; use --scorer=impact"
    done
    echo 'merg' >log
    ask replay i.gx log --format=lines --engine=cpu --verify
    exits 0
    says 'or, impact, k 10'
    ask replay i.gx log --format=lines --engine=cpu --scorer=bm25 --on-error=skip
    exits 2
    complains 'use --scorer=impact'
}

@test "recode, reorder, export and import keep impacts" {
    ask export "$TINY" -o x
    ask import x -o i.gx --impacts
    ask recode -q i.gx -o recoded.gx --codec=rice
    exits 0
    ask reorder -q i.gx -o reordered.gx --order=random
    exits 0
    ask export -q i.gx -o i.ciff
    exits 0
    ask import i.ciff -o back.gx
    exits 0
    for index in recoded reordered back; do
        holds_impacts $index.gx
        diff <("$GPUIDX" query -q i.gx merg --engine=cpu --format=trec -k 100 | cut -d' ' -f3,5 | sort) \
            <("$GPUIDX" query -q $index.gx merg --engine=cpu --format=trec -k 100 | cut -d' ' -f3,5 | sort)
    done
    ask export -q back.gx -o back
    for part in docs freqs sizes terms documents; do
        cmp x.$part back.$part
    done
    ask export "$TINY" -o plain.ciff
    ask import plain.ciff -o named.gx --impacts
    exits 0
    holds_impacts named.gx
}

@test "what another program wrote as CIFF is imported" {
    ask import "$DATA/fuzz-ciff/toolkit" -o x.gx # by ciff-toolkit: tests/witness/ciff.py --make
    exits 0
    ask info x.gx
    says 'words between white space'
    says 'documents    40'
    ask export x.gx -o x.ciff
    exits 0
    ask import x.ciff -o y.gx
    exits 0
    "$GPUIDX" export -q x.gx -o x
    "$GPUIDX" export -q y.gx -o y
    for part in docs freqs sizes terms documents; do
        cmp x.$part y.$part
    done
}

@test "a CIFF file with a fault is refused by file, byte and reason, and leaves nothing" {
    ask export "$TINY" -o x.ciff
    truncate -s -3 x.ciff
    ask import x.ciff -o back.gx
    exits 3
    complains 'x.ciff: byte '
    complains 'a message of '
    gzip x.ciff
    truncate -s -20 x.ciff.gz
    ask import x.ciff.gz -o back.gx
    exits 3
    complains 'x.ciff.gz: byte '
    ask import "$DATA/tiny.jsonl" -o back.gx
    exits 3
    ask import "$TINY" -o back.gx
    exits 3
    [ "$(ls)" = x.ciff.gz ]
}

@test "import and export say what they cannot tell or do" {
    ask export "$TINY" -o x
    ask export "$TINY" -o x -f ciff
    exits 0
    ask import x -o back.gx
    exits 2
    complains 'x.docs; which is it'
    ask import x -o back.gx -f ds2i
    exits 0
    ask import x -o back.gx -f ciff --force
    exits 0
    ask import x -o back.gx -f ciff --force --terms=x.terms
    exits 2
    ask import x -o back.gx -f ciff --force --stemmer=porter
    exits 2
    ask import x -o x -f ciff --force
    exits 2
    ask export "$TINY" -o x.ciff.gz
    exits 2
    complains 'uncompressed'
    ask export "$TINY" -o x -f ciff
    exits 5
}

@test "import names the file and the byte of what is wrong" {
    ask export "$TINY" -o x
    truncate -s -4 x.freqs
    ask import x -o back.gx
    exits 3
    complains 'x.freqs: byte '
    [ ! -e back.gx ]
    ask import x -o x.docs --force
    exits 2
    complains 'x.docs is what is imported'
    ask import nothing -o back.gx
    exits 5
    complains 'nothing.docs'
}

@test "export -o - writes CIFF to standard output, and ds2i nowhere" {
    "$GPUIDX" export "$TINY" -o direct.ciff
    TMPDIR=$PWD "$GPUIDX" export "$TINY" -o - >piped.ciff
    cmp direct.ciff piped.ciff
    [ "$(ls -d gpuidx-export-* 2>/dev/null | wc -l)" = 0 ]
    ask export "$TINY" -f ds2i -o -
    exits 2
    complains 'ds2i is several files'
    [ ! -e ./-.docs ]
}

# ---- attributes ----

# 400 documents with values of all types, in attributes.gx: extremes, escapes, several and missing ones.
build_attributes() {
    python3 - >corpus.jsonl <<'END'
import json, math, random, struct
random.seed(5)
def number():
    while True:
        x = struct.unpack("<d", random.randbytes(8))[0]
        if math.isfinite(x):
            return x
for i in range(400):
    d = {"id": "d%d" % i, "text": "word w%d" % (i % 7)}
    if i % 5:
        d["n"] = random.choice([random.randrange(-2**63, 2**63), -2**63, 2**63 - 1, 0])
    if i % 3:
        d["x"] = random.choice([number(), 0.1, 1e-320, 5e-324, -1.7976931348623157e308, 100])
    if i % 4:
        d["when"] = random.choice(["2019-05-31T12:30:00+02:00", "0000-01-01T10:00:00+10:00",
                                   "9999-12-31T23:59:59Z", "1969-12-31T23:59:59Z", "2020-02", "0000",
                                   "%04d-01-01" % random.randrange(10000)])
    if i % 6:
        d["name"] = random.choice(["tab\there", "a,b", "c:\\d", "line\nend\r", "\u00e4\u00f6", ' "q" ', "-", "\\t"])
    d["tags"] = random.sample(["a,b", "c\\d", "x\ny", "plain", "\u00fc", "t\tt", "\\"], random.randrange(4))
    if i % 7:
        d["open"] = random.random() < .5
    print(json.dumps(d))
END
    "$GPUIDX" build -q corpus.jsonl -o attributes.gx --force --attr=n:int:bins=20:by=width,x:float,when:date \
        --attr=name:keyword:bitmaps=none,tags:keywords:bitmaps=equality,open:bool
}

# What an index says of its attributes, and what some filters find.
attributes_of() {
    "$GPUIDX" info --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["attributes"])'
    for filter in 'n:<0' 'x:[0 TO 1]' 'when:<1970' 'name:"a,b"' 'tags:"c\\d" AND NOT has:when' 'open:true'; do
        "$GPUIDX" query -q --engine=cpu --format=tsv -k 400 --filter "$filter" "$1" word
    done
}

@test "attributes go to a file beside CIFF and ds2i, and come back the same, in any order of lines" {
    build_attributes
    "$GPUIDX" check -q --level=full attributes.gx
    ask export attributes.gx -o a.ciff --attributes=a.tsv
    exits 0
    [ "$(head -n 1 a.tsv | tr '\t' ' ')" = "id n:int:bitmaps=range:bins=20:by=width x:float when:date \
name:keyword:bitmaps=none tags:keywords:bitmaps=equality open:bool" ]
    [ "$(wc -l <a.tsv)" = 401 ]
    (head -n 1 a.tsv && tail -n +2 a.tsv | sort -r) >reversed.tsv
    gzip -k reversed.tsv
    for file in a.tsv reversed.tsv reversed.tsv.gz; do
        ask import a.ciff -o back.gx --attributes=$file --force
        exits 0
        [ "$(wc -l <.stderr)" = 1 ]
        complains 'back.gx: 400 documents, 8 terms, 800 postings, '
        ask check -q --level=full back.gx
        exits 0
        "$GPUIDX" export back.gx --attributes=- | cmp - a.tsv
        diff <(attributes_of attributes.gx) <(attributes_of back.gx)
    done
    "$GPUIDX" export attributes.gx -o ds
    "$GPUIDX" import ds -o ds.gx --attributes=- <reversed.tsv
    diff <(attributes_of attributes.gx) <(attributes_of ds.gx)
}

@test "the attributes of a collection are those of its live documents" {
    build_attributes
    "$GPUIDX" export attributes.gx --attributes=a.tsv
    sed -n '1,150p' corpus.jsonl >1.jsonl
    sed -n '151,$p' corpus.jsonl >2.jsonl
    for i in 1 2; do
        "$GPUIDX" build -q $i.jsonl -o $i.gx --attr=n:int:bins=20:by=width,x:float,when:date \
            --attr=name:keyword:bitmaps=none,tags:keywords:bitmaps=equality,open:bool
    done
    "$GPUIDX" collect 1.gx 2.gx -o folder
    "$GPUIDX" delete -q folder --filter='id:d3 OR id:d200'
    diff <(grep -vP '^(d3|d200)\t' a.tsv) <("$GPUIDX" export folder --attributes=-)
}

@test "columns of any table become attributes, and bad lines are told by file and line" {
    printf '{"id":"%s","text":"word"}\n' a b c >c.jsonl
    "$GPUIDX" build -q c.jsonl -o c.gx
    "$GPUIDX" export c.gx -o c.ciff
    printf 'year\tid\tnote\n2001\ta\tx\n\nmany\tb\ty\n2003\tnone\tz\n2004\ta\tz\n2005\tc\n' >table.tsv
    ask import c.ciff -o t.gx --attributes=table.tsv --attr=year:int
    exits 3
    complains "table.tsv:4: the attribute year: 'many' is no whole number"
    [ ! -e t.gx ]
    ask import c.ciff -o t.gx --attributes=table.tsv --attr=year:int --on-error=skip
    exits 0
    complains "table.tsv:4: the attribute year: 'many' is no whole number; skipped"
    complains "table.tsv:5: no document has the id 'none'; skipped"
    complains "table.tsv:6: document 'a' has an earlier line; skipped"
    complains "table.tsv:7: 2 fields, where the header has 3; skipped"
    complains '2 documents have no line in table.tsv, and so no attributes'
    [ "$("$GPUIDX" export t.gx --attributes=- | tr '\t\n' ' ;')" = 'id year:int;a 2001;b ;c ;' ]
    ask import c.ciff -o u.gx --attributes=table.tsv
    exits 3
    complains "table.tsv:1: the column 'year' has no type"
    ask import c.ciff -o u.gx --attributes=table.tsv --attr=month:int
    exits 3
    complains "table.tsv:1: no column is named 'month'"
    printf 'id\tk:keyword\na\tx\\y\n' >escape.tsv
    ask import c.ciff -o u.gx --attributes=escape.tsv
    exits 3
    complains 'escape.tsv:2: a backslash is followed by none of'
    ask import c.ciff -o u.gx --attr=year:int
    exits 2
    complains '--attr: of which file?'
    ask import c.ciff -o u.gx --attributes=nowhere.tsv
    exits 5
    complains 'nowhere.tsv'
    ask import c.ciff -o table.tsv --attributes=table.tsv --force
    exits 2
    complains 'table.tsv is what is imported'
    [ ! -e u.gx ]
    ask export c.gx --attributes=none.tsv
    exits 2
    complains 'c.gx has no attributes'
    [ ! -e none.tsv ]
    ask export t.gx --attributes=table.tsv
    exits 5
    complains 'table.tsv exists'
}

@test "ids that come twice are refused or kept, and odd ids and a wrong cf are told" {
    local cases=$DATA/cases/text
    ask import "$cases/ciff-id-twice.ciff" -o c.gx
    exits 3
    complains 'documents 1 and 2 have the same id, "d2"'
    complains '--duplicates=keep'
    [ ! -e c.gx ]
    ask import "$cases/ciff-id-twice.ciff" -o c.gx --duplicates=keep
    exits 0
    complains '1 document has an id that an earlier one has, the first "d2"'
    ask import "$cases/ciff-id-blank.ciff" -o b.gx
    exits 0
    complains '1 document has an id with white space'
    complains '"d 1"'
    printf 'a\nb\nb\n' >names # the same of ds2i
    printf '%s\n' '{"id": "1", "text": "heron"}' \
        '{"id": "2", "text": "heron reed"}' '{"id": "3", "text": "reed"}' >d.jsonl
    "$GPUIDX" build -q --analyzer=simple d.jsonl -o d.gx
    "$GPUIDX" export -q d.gx -f ds2i -o ds
    ask import ds -o e.gx --documents=names
    exits 3
    complains 'documents 1 and 2 have the same id, "b"'
    ask import ds -o e.gx --documents=names --duplicates=keep
    exits 0
    complains 'an earlier one has'
    "$GPUIDX" export -q d.gx -o d.ciff
    ask import d.ciff -o f.gx
    exits 0
    [[ $stderr != *cf* ]]
    python3 - d.ciff wrong.ciff <<'END' # the first cf, 2 of heron, becomes 7
import sys
b = open(sys.argv[1], 'rb').read()
at = b.index(b'heron') + 5
assert b[at:at + 4] == b'\x10\x02\x18\x02', b[at:at + 4]
open(sys.argv[2], 'wb').write(b[:at + 3] + b'\x07' + b[at + 4:])
END
    ask import wrong.ciff -o g.gx
    exits 0
    complains "wrong.ciff: 1 of 2 lists have a cf that is not the sum of their tfs (list 0 of 2 ('heron'): cf 7, sum 2)"
    ask import wrong.ciff -o h.gx --impacts
    exits 0
    [[ $stderr != *cf* ]]
}

@test "import and export say what they wrote, in words and units of build" {
    "$GPUIDX" build -q --analyzer=whitespace "$DATA/tiny.jsonl" -o a.gx
    docs=$("$GPUIDX" info --json a.gx | python3 -c 'import json, sys; r = json.load(sys.stdin); print(r["n_docs"])')
    ask export a.gx -o a.ciff
    exits 0
    [[ $stderr =~ ^gpuidx:\ a.ciff:\ $docs\ documents,\ [0-9,]+\ terms,\ [0-9,]+\ postings\ as\ CIFF,\ [0-9.]+\ kB$ ]]
    ask export a.gx -o a
    exits 0
    [[ $stderr =~ ^gpuidx:\ a:\ $docs\ documents,\ .*\ as\ ds2i,\ [0-9.]+\ kB$ ]]
    ask export -q a.gx -o quiet.ciff
    silent
    ask import a -o b.gx
    exits 0
    [[ $stderr =~ b.gx:\ $docs\ documents,\ .*\ kB\ \(lists:\ [0-9.]+\ bits\ a\ posting\) ]]
    complains 'words of queries are looked up as they are'
    ask import a -o c.gx --analyzer=simple
    exits 0
    [[ $stderr != *'looked up'* ]]
    ask recode a.gx -o d.gx
    exits 0
    [[ $stderr =~ ^gpuidx:\ d.gx:\ [0-9.]+\ kB,\ .*\ before:\ [0-9.]+\ kB\ and\  ]]
}
