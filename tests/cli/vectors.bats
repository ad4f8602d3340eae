# Vectors: build -f vectors and csr, queries with weights, recode --impacts, generate --shape; bad input is named.
load cli

some_vectors() {
    printf '%s\n' '{"id": "a", "contents": "x y", "vector": {"index": 1.27, "##ing": 0.4}}' \
        '{"id": "b", "vector": {}}' \
        '{"id": "c", "title": "T", "vector": {"index": 0.001, "zoo": 2.5e0}}' >v.jsonl
}

# csr FILE ROWS COLUMNS OFFSETS COLUMN_NUMBERS VALUES: a matrix as Big-ANN has it; the lists are Python's.
csr() {
    python3 - "$@" <<'EOF'
import struct, sys
path, rows, columns, offsets, numbers, values = sys.argv[1], *map(eval, sys.argv[2:])
with open(path, "wb") as f:
    f.write(struct.pack(f"<3q{len(offsets)}q", rows, columns, len(values), *offsets))
    f.write(struct.pack(f"<{len(numbers)}i{len(values)}f", *numbers, *values))
EOF
}

@test "vectors become an index of impacts with a unit, and scores are in the weights' measure" {
    some_vectors
    ask build -f vectors v.jsonl -o v.gx --store=text
    exits 0
    complains '3 documents, 3 terms, 4 postings'
    complains '1 documents without a term'
    ask check --level=full v.gx
    exits 0
    ask info v.gx
    says 'unit         0.00981140137: a score is this times'
    says 'impacts      {"of":"vectors","bits":8,"scale":"collection"}'
    says 'words between white space, in upper and lower case'
    ask info --json v.gx
    says '"impact_unit": 0.0098114013'
    ask query -q v.gx index --format=trec --engine=cpu
    [ "$(cut -d' ' -f3,5 <<<"$output")" = $'a 1.2656707764\nc 0.0098114013672' ]
    ask query -q v.gx index --engine=cpu --scorer=bm25
    exits 2
    complains 'v.gx holds impacts instead of term frequencies, which the scorer bm25 needs; use --scorer=impact'
    ask query -q v.gx '\##ing^2.5 zoo' --syntax=boolean --format=trec --engine=cpu
    [ "$(cut -d' ' -f3 <<<"$output")" = $'c\na' ]
    ask doc v.gx a
    says 'x y'
}

@test "each list may have a unit, more bits are finer, and whole numbers stay" {
    some_vectors
    ask build -qf vectors v.jsonl -o l.gx --scale=list --bits=4
    exits 0
    ask info l.gx
    says 'unit         one for each list'
    says '"bits":4,"scale":"list"'
    ask export -q l.gx -o l.ciff
    exits 3
    complains 'each list has a unit of impacts of its own, which CIFF cannot hold'
    ask build -qf vectors v.jsonl -o f.gx --bits=16
    ask query -q f.gx index --format=trec --engine=cpu
    [[ $(head -1 <<<"$output") == *" 1.2699"* || $(head -1 <<<"$output") == *" 1.2700"* ]]
    printf '%s\n' '{"id": 1, "vector": {"a": 3, "b": 255}}' '{"id": 2, "vector": {"a": 7}}' >w.jsonl
    ask build -qf vectors w.jsonl -o w.gx
    ask info --json w.gx
    says '"impact_unit": 1.0'
    ask query -q w.gx 'a b' --format=trec --engine=cpu
    [ "$(cut -d' ' -f3,5 <<<"$output")" = $'1 258\n2 7' ]
    ask build -qf vectors w.jsonl -o n.gx --bits=4
    ask info --json n.gx
    says '"impact_unit": 17.0'
}

@test "a unit stays when an index is recoded, reordered or exported to CIFF" {
    some_vectors
    "$GPUIDX" build -qf vectors v.jsonl -o v.gx
    "$GPUIDX" build -qf vectors v.jsonl -o l.gx --scale=list
    "$GPUIDX" export -q v.gx -o v.ciff
    "$GPUIDX" import -q v.ciff -o i.gx
    for from in v l; do
        "$GPUIDX" recode -q $from.gx -o $from.r.gx --codec=auto
        "$GPUIDX" reorder -q $from.gx -o $from.o.gx --order=random
        for to in $from.r $from.o; do
            diff <("$GPUIDX" query -q $from.gx 'index zoo' --format=trec --engine=cpu) \
                <("$GPUIDX" query -q $to.gx 'index zoo' --format=trec --engine=cpu)
        done
    done
    diff <("$GPUIDX" query -q v.gx 'index zoo' --format=trec --engine=cpu) \
        <("$GPUIDX" query -q i.gx 'index zoo' --format=trec --engine=cpu)
}

@test "bad vectors are named with file, line and reason, or skipped" {
    refused() { # LINE WORDS
        printf '%s\n' '{"id": "good", "vector": {"a": 1}}' "$1" >b.jsonl
        ask build -qf vectors b.jsonl -o b.gx
        exits 3
        complains "b.jsonl:2: "
        complains "$2"
        [ ! -e b.gx ]
        ask build -qf vectors b.jsonl -o b.gx --on-error=skip
        exits 0
        complains "$2"
        complains '; skipped'
        ask info --json b.gx
        says '"n_docs": 1,'
        rm b.gx
    }
    refused '{"id": "q", "vector": {"a": -1}}' "the weight of 'a' is -1; it must be a finite number above 0"
    refused '{"id": "q", "vector": {"a": 0}}' "the weight of 'a' is 0; it must"
    refused '{"id": "q", "vector": {"a": -0.0}}' "the weight of 'a' is -0; it must"
    refused '{"id": "q", "vector": {"a": NaN}}' 'a weight that is NaN or infinite'
    refused '{"id": "q", "vector": {"a": -Infinity}}' 'a weight that is NaN or infinite'
    refused '{"id": "q", "vector": {"a": 1e999}}' "the weight of 'a' is 1e999; the most is 7.92282e+28"
    refused '{"id": "q", "vector": {"a": 1e300}}' "the weight of 'a' is 1e300; the most is 7.92282e+28"
    refused '{"id": "q", "vector": {"a": 1e-300}}' "the weight of 'a' is 1e-300; the least is 1.4013e-45"
    refused '{"id": "q", "vector": {"a": 0.00e7}}' "the weight of 'a' is 0; it must"
    refused '{"id": "q", "vector": {"a": -1e300}}' "the weight of 'a' is -inf; it must"
    refused '{"id": "q", "vector": {"a": 1e30}}' "the weight of 'a' is 1e+30; the most is 7.92282e+28"
    refused '{"id": "q", "vector": {"a": 1, "b": 2, "a": 3}}' "the vector has the term 'a' twice"
    refused '{"id": "q", "vector": {"": 3}}' 'the vector has an empty term'
    refused '{"id": "q", "vector": {"a": "3"}}' 'a weight that is no number'
    refused '{"id": "q", "vector": {"a": [3]}}' 'a weight that is no number'
    refused '{"id": "q", "vector": {"a": 1}, "vector": {}}' 'a vector, and there was one before'
    refused '{"id": "q", "vector": ["a"]}' 'a vector that is no object of terms and weights'
    refused '{"id": "q", "vector": {"a": 1' 'the line ends inside the object'
    refused '{"id": "q", "text": "a"}' 'no vector: the object lacks the field vector'
    refused '{"vector": {"a": 1}}' 'no id'
    refused "{\"id\": \"q\", \"vector\": {\"$(printf 'a%.0s' $(seq 65536))\": 1}}" \
        'the vector has a term of 65536 bytes; the most is 65535'
    ask build -q "$DATA/tiny.jsonl" -o x.gx --bits=8
    exits 2
    complains '--bits is of vectors'
    ask build -qf vectors b.jsonl -o x.gx --bits=17
    exits 2
}

@test "a vector of 100,000 terms is indexed, by any number of threads" {
    python3 -c '
import json
print(json.dumps({"id": "long", "vector": {f"t{i}": 1 + i % 200 for i in range(100000)}}))
for d in range(3000):
    print(json.dumps({"id": f"d{d}", "vector": {f"t{(d * 7 + i * i) % 500}": 0.5 + i for i in range(20)}}))' >v.jsonl
    ask build -qf vectors v.jsonl -o one.gx --memory=1M
    exits 0
    ask build -qf vectors v.jsonl -o four.gx --threads=4 --memory=16M
    exits 0
    ask query -q one.gx t99999 --format=trec --engine=cpu
    says 'long'
    for q in 't1 t7 t400' t0 't499 t99'; do
        diff <("$GPUIDX" query -q one.gx "$q" --format=trec --engine=cpu) \
            <("$GPUIDX" query -q four.gx "$q" --format=trec --engine=cpu)
    done
}

@test "of vectors of one id the last, and its weights alone, may stay" {
    printf '%s\n' '{"id": "a", "vector": {"x": 99.5}}' '{"id": "b", "vector": {"x": 2}}' \
        '{"id": "a", "vector": {"y": 3}}' >v.jsonl
    ask build -qf vectors v.jsonl -o v.gx --duplicates=last
    exits 0
    ask info --json v.gx
    says '"impact_unit": 1.0'
    says '"n_terms": 2,'
}

@test "a CSR matrix is rows of terms that are column numbers" {
    csr m.csr 3 50 '[0, 2, 2, 3]' '[7, 49, 7]' '[0.5, 2.0, 1.25]'
    ask build -f csr m.csr -o m.gx
    exits 0
    complains '3 documents, 2 terms, 3 postings'
    ask query -q m.gx '7' --format=trec --engine=cpu
    [ "$(cut -d' ' -f3 <<<"$output")" = $'2\n0' ]
}

@test "a 0 that a CSR matrix stores is left out of documents and queries" {
    csr m.csr 3 50 '[0, 2, 3, 4]' '[7, 49, 7, 7]' '[0.5, 0.0, -0.0, 1.25]'
    csr n.csr 3 50 '[0, 1, 1, 2]' '[7, 7]' '[0.5, 1.25]'
    for m in m n; do
        ask build -f csr $m.csr -o $m.gx
        exits 0
        complains '3 documents, 1 term, 2 postings'
        complains '1 documents without a term'
        "$GPUIDX" replay -q $m.gx $m.csr --format=csr --engine=cpu --run $m.run >/dev/null
    done
    diff m.run n.run
    [ "$(cut -d' ' -f1,3 m.run)" = $'0 2\n0 0\n2 2\n2 0' ]
}

@test "a CSR matrix is guessed as a query log, by replay and bench query" {
    csr m.csr 3 50 '[0, 2, 2, 3]' '[7, 49, 7]' '[0.5, 2.0, 1.25]'
    "$GPUIDX" build -qf csr m.csr -o m.gx
    "$GPUIDX" replay -q m.gx m.csr --format=csr --engine=cpu --run given.run >/dev/null
    "$GPUIDX" replay -q m.gx m.csr --engine=cpu --run guessed.run >/dev/null
    [ -s given.run ]
    diff given.run guessed.run
    ask bench query m.gx m.csr --engine=cpu --op=or -k 2 --runs=1 --format=json
    exits 0
    says '"queries": 3'
    head -c 70 /dev/zero >m.csr # the head of an empty matrix, and too much behind it
    ask replay m.gx m.csr --engine=cpu
    exits 3
    complains 'no query log but a binary file'
}

@test "--members names the members of vectors, of documents and of queries" {
    some_vectors
    sed 's/"id"/"pid"/; s/"vector"/"weights"/; s/"contents"/"passage"/' v.jsonl >n.jsonl
    "$GPUIDX" build -qf vectors v.jsonl -o v.gx --store=text
    ask build -qf vectors n.jsonl -o n.gx --store=text --members=id=pid,vector=weights,text=passage,title
    exits 0
    for d in a b c; do diff <("$GPUIDX" doc v.gx $d) <("$GPUIDX" doc n.gx $d); done
    printf '%s\n' '{"qid": "q1", "vector": {"index": 2, "zoo": 1}}' '{"qid": "q2", "vector": {"##ing": 1}}' >q.jsonl
    sed 's/"qid"/"name"/; s/"vector"/"emb"/' q.jsonl >r.jsonl
    "$GPUIDX" replay -q v.gx q.jsonl --engine=cpu --run q.run >/dev/null
    "$GPUIDX" replay -q n.gx r.jsonl --engine=cpu --members=id=name,vector=emb --run r.run >/dev/null
    "$GPUIDX" replay -q n.gx r.jsonl --engine=cpu --members=id=name,vector=emb -f vectors --run s.run >/dev/null
    [ "$(wc -l <q.run)" = 3 ]
    diff q.run r.run
    diff q.run s.run
    # without vector=, its name is vector; the members that are named are the only ones
    ask build -qf vectors v.jsonl -o w.gx --members=id
    exits 0
    ask build -qf vectors n.jsonl -o x.gx --members=id=pid
    exits 3
    complains 'n.jsonl:1: no vector: the object lacks the field vector'
    ask build -qf vectors v.jsonl -o x.gx --members=id,vector=weights
    exits 3
    complains 'v.jsonl:1: no vector: the object lacks the field weights'
    for bad in vector=v id,vector=v,vector=w id,vector= id,weights=v id,vector=id; do
        ask build -qf vectors v.jsonl -o x.gx --members=$bad
        exits 2
        complains "members: '"
    done
    ask build -qf jsonl "$DATA/tiny.jsonl" -o x.gx --members=id,text,vector
    exits 2
    complains "members: 'vector' is of vectors, which gpuidx build --format=vectors reads"
    ask replay -q v.gx "$DATA/tiny.jsonl" --engine=cpu --format=jsonl --members=id=id
    complains '--members means nothing to a log of the form jsonl'
}

@test "a CSR matrix with bad offsets, columns or sizes is refused" {
    refused() { # REASON CSR...
        [ $# = 1 ] || csr m.csr "${@:2}"
        ask build -qf csr m.csr -o m.gx
        exits 3
        complains "$1"
        [ ! -e m.gx ]
    }
    refused 'm.csr:2: row 1 has the values 3 to 2 of 3' 3 50 '[0, 3, 2, 3]' '[7, 49, 8]' '[0.5, 2.0, 1.25]'
    refused 'm.csr:1: row 0 has the values 0 to -5 of 3' 3 50 '[0, -5, 2, 3]' '[7, 49, 7]' '[0.5, 2.0, 1.25]'
    refused 'm.csr:1: row 0 has the values 0 to 9 of 3' 3 50 '[0, 9, 9, 3]' '[7, 49, 7]' '[0.5, 2.0, 1.25]'
    refused "m.csr: the rows' offsets go from 1 to 3, not from 0 to 3" \
        3 50 '[1, 2, 2, 3]' '[7, 49, 7]' '[0.5, 2.0, 1.25]'
    refused "m.csr: the rows' offsets go from 0 to 4, not from 0 to 3" \
        3 50 '[0, 2, 2, 4]' '[7, 49, 7]' '[0.5, 2.0, 1.25]'
    refused 'm.csr:1: row 0 has a value in column 50 of 50' 3 50 '[0, 2, 2, 3]' '[7, 50, 7]' '[0.5, 2.0, 1.25]'
    refused 'm.csr:1: row 0 has a value in column -1 of 50' 3 50 '[0, 2, 2, 3]' '[7, -1, 7]' '[0.5, 2.0, 1.25]'
    refused "m.csr:1: the vector has the term '7' twice" 3 50 '[0, 2, 2, 3]' '[7, 7, 7]' '[0.5, 2.0, 1.25]'
    refused "m.csr:1: the weight of '8' is nan" 3 50 '[0, 2, 2, 3]' '[7, 8, 7]' '[0.5, float("nan"), 1.25]'
    refused 'm.csr: it is no CSR matrix: ' 4 50 '[0, 2, 2, 3]' '[7, 8, 7]' '[0.5, 2.0, 1.25]'
    refused 'm.csr: it is no CSR matrix: its head says -1 rows' -1 50 '[0, 2, 2, 3]' '[7, 8, 7]' '[0.5, 2.0, 1.25]'
    printf 'short' >m.csr
    refused 'fewer than the 24 bytes'
    ask build -qf csr - -o m.gx <m.csr
    exits 5
    complains 'stdin: a CSR matrix is read from a regular file, not from a pipe'
    csr m.csr 3 50 '[0, 3, 2, 3]' '[7, 49, 8]' '[0.5, 2.0, 1.25]'
    ask build -qf csr m.csr -o m.gx --on-error=skip
    complains 'row 1 has the values 3 to 2 of 3; skipped'
}

@test "queries are vectors, matrices, boosted words, or words that say a weight by repetition" {
    some_vectors
    "$GPUIDX" build -qf vectors v.jsonl -o v.gx
    run_of() { # LOG FLAGS
        "$GPUIDX" replay -q v.gx "$@" --engine=cpu --run out.run --force >/dev/null && cut -d' ' -f1,3,5 out.run
    }
    printf '%s\n' '{"qid": "q1", "vector": {"index": 2, "zoo": 1, "unknown": 3.5}}' \
        '{"id": 2, "vector": {}}' '{"_id": "3", "vector": {"##ing": 0.5}}' >q.jsonl
    run_of q.jsonl >vectors.txt
    [ "$(cat vectors.txt)" = $'q1 a 2.5313415527\nq1 c 2.5215301514\n3 a 0.20113372803' ]
    diff vectors.txt <(run_of q.jsonl --format=vectors)
    printf 'q1\tindex^2 zoo unknown^3.5\n3\t\\##ing^0.5\n' >q.tsv
    diff vectors.txt <(run_of q.tsv --syntax=boolean)
    printf '1:index index zoo\n' >q.pisa
    diff <(grep ^q1 vectors.txt | cut -d' ' -f2) <(run_of q.pisa | cut -d' ' -f2)
    ask replay -q v.gx q.jsonl --engine=cpu --verify=1
    exits 0
    says '0 differ'
    csr m.csr 3 50 '[0, 2, 2, 3]' '[7, 49, 7]' '[0.5, 2.0, 1.25]'
    "$GPUIDX" build -qf csr m.csr -o m.gx
    ask replay -q m.gx m.csr --format=csr --engine=cpu --run m.run
    exits 0
    [ "$(cut -d' ' -f1,3,4 m.run)" = $'0 0 1\n0 2 2\n2 2 1\n2 0 2' ]
}

@test "a query in JSON is a vector, alone and from a pipe, and a bad one is named" {
    printf '%s\n' '{"id": "a", "vector": {"land": 1.5, "rover": 2}}' '{"id": "b", "vector": {"rover": 1}}' >v.jsonl
    "$GPUIDX" build -q -f vectors v.jsonl -o v.gx
    ask query -q v.gx 'rover^2.5 land' --syntax=boolean --format=trec --engine=cpu
    exits 0
    words=$output
    for syntax in plain boolean; do
        ask query -q v.gx ' { "rover": 2.5, "land": 1}' --syntax=$syntax --format=trec --engine=cpu
        exits 0
        [ "$output" = "$words" ]
    done
    printf '1\t{"rover": 2.5, "land": 1}\nland\n' | ask query -q v.gx --format=trec --engine=cpu
    exits 0
    [ "$(head -2 <<<"$output" | cut -d' ' -f3-)" = "$(cut -d' ' -f3- <<<"$words")" ]
    ask query -q v.gx '{"no such term": 1}' --format=trec --engine=cpu
    exits 0
    [ -z "$output" ]
    for bad in '{"rover": "2"}' '{"rover": 2' '{"rover": -1}' '{"rover": 1, "rover": 2}' '{"rover": [1]}'; do
        ask query -q v.gx "$bad" --engine=cpu
        exits 2
    done
    complains 'the query is a JSON vector, and the weight of "rover" is no number'
    printf 'a\tone two\n' >t.tsv
    "$GPUIDX" build -q t.tsv -o t.gx
    ask query -q t.gx '{"one": 2}' --engine=cpu --format=trec # words
    exits 0
    [ "$(cut -d' ' -f3 <<<"$output")" = a ]
}

@test "queries with bad weights are named with file and line, or skipped" {
    some_vectors
    "$GPUIDX" build -qf vectors v.jsonl -o v.gx
    refused() {
        printf '%s\n' '{"id": "1", "vector": {"zoo": 1}}' "$1" >q.jsonl
        ask replay -q v.gx q.jsonl --format=vectors --engine=cpu
        exits 3
        complains 'q.jsonl:2: '
        complains "$2"
        ask replay v.gx q.jsonl --format=vectors --engine=cpu --on-error=skip
        exits 0
    }
    refused '{"id": "2", "vector": {"zoo": -1}}' "the weight of 'zoo' is -1; it must be a finite number above 0"
    refused '{"id": "2", "vector": {"zoo": 0}}' "the weight of 'zoo' is 0; it must"
    refused '{"id": "2", "vector": {"zoo": Infinity}}' 'a weight that is NaN or infinite'
    refused '{"id": "2", "vector": {"zoo": 1e99}}' "the weight of 'zoo' is 1e99; the most is 7.92282e+28"
    refused '{"id": "2", "vector": {"zoo": 1e-99}}' "the weight of 'zoo' is 1e-99; the least is 1.4013e-45"
    refused '{"id": "2", "text": "zoo"}' 'no vector'
    refused "$(python3 -c 'import json; print(json.dumps({"id": 2, "vector": {f"t{i}": 1 for i in range(1025)}}))')" \
        'the query has more than 1024 different terms'
}

@test "impacts are made of term frequencies by DPH, query likelihood and others" {
    "$GPUIDX" build -q "$DATA/tiny.jsonl" -o t.gx
    for model in bm25 bm25l dph ql:mu=500 pl2:c=7; do
        ask recode -q t.gx -o i.gx --force --impacts=$model
        exits 0
        ask check --level=full i.gx
        exits 0
        ask info i.gx
        says "\"of\":\"${model%:*}\",\"bits\":8"
    done
    says '"c":7.0'
    ask recode -q i.gx -o j.gx --impacts=dph
    exits 2
    complains 'i.gx holds impacts already'
    refused() {
        ask recode -q t.gx -o j.gx "$1"
        exits 2
        complains "$2"
        [ ! -e j.gx ]
    }
    refused --impacts=tfidf "it is none of bm25, bm25l, dph, ql and pl2"
    refused --impacts=ql:nu=3 "ql has no parameter 'nu'"
    refused --impacts=ql:mu=x 'mu needs a number, as in mu=1000'
    refused --impacts=ql:mu=0 'mu of ql is 0; it must lie between'
    refused --impacts=bm25:b=2 'b of bm25 is 2; it must lie between 0 and 1'
    refused --bits=4 '--bits is of --impacts'
}

@test "generated vectors have the lengths, quantiles and overlap that generate promises" {
    for shape in splade unicoil inference-free; do
        ask generate -o $shape --shape=$shape --documents=4000 --queries=600
        exits 0
        complains '4000 documents of '
    done
    python3 - <<'EOF'
import struct

def read(path):
    with open(path, "rb") as f:
        rows, columns, n = struct.unpack("<3q", f.read(24))
        ends = struct.unpack(f"<{rows + 1}q", f.read(8 * rows + 8))
        terms, weights = struct.unpack(f"<{n}i", f.read(4 * n)), struct.unpack(f"<{n}f", f.read(4 * n))
        assert not f.read() and columns == 30522 and max(terms) < columns
    return [terms[a:b] for a, b in zip(ends, ends[1:])], weights

def quantiles(weights, want):
    weights = sorted(weights)
    for share, value in zip((.1, .25, .5, .75, .9, .99), want):
        found = weights[int(share * len(weights))]
        assert abs(found / value - 1) < .1, (share, value, found)

for shape, doc, query in (("splade", (120, 102, 215), (44, 12, 107)), ("unicoil", (68, 50, 130), (6, 2, 24)),
                          ("inference-free", (180, 150, 315), (7, 2, 28))):
    docs, doc_weights = read(shape + ".csr")
    queries, query_weights = read(shape + ".queries.csr")
    for rows, (mean, least, most) in (docs, doc), (queries, query):
        sizes = [len(row) for row in rows]
        assert abs(sum(sizes) / len(sizes) / mean - 1) < .08 and min(sizes) >= least and max(sizes) <= most, shape
        assert all(list(row) == sorted(set(row)) for row in rows)
    quantiles(doc_weights, (.044, .111, .278, .629, 1.08, 2.00))
    quantiles(query_weights, (.046, .119, .293, .661, 1.62, 2.46))
    if shape == "splade":
        lists = {}
        for d, row in enumerate(docs):
            for t in row:
                lists.setdefault(t, set()).add(d)
        hits = [[lists.get(t, set()) for t in row] for row in queries]
        touched = sum(len(set().union(*h)) for h in hits) / len(queries) / len(docs)
        postings = sum(len(x) for h in hits for x in h) / len(queries) / len(docs)
        assert .53 < touched < .57 and 1.8 < postings < 2.2, (touched, postings)
EOF
    ask generate -o again --shape=splade --documents=4000 --queries=600
    cmp splade.csr again.csr
    cmp splade.queries.csr again.queries.csr
    ask generate -o j --shape=splade --documents=50 --queries=20 --format=vectors
    exits 0
    ask build -qf vectors j.jsonl -o j.gx
    exits 0
    ask replay j.gx j.queries.jsonl --engine=cpu --verify=1
    exits 0
    says '0 differ'
    ask generate -o j --shape=splade --documents=50
    exits 0
    ask generate -o j --shape=splade --documents=50
    exits 5
    ask generate -o j --format=csr
    exits 2
    ask generate -o j --shape=splade --density=2
    exits 2
}

@test "generated vectors are the same by any number of threads, and a full disk is told" {
    for format in csr vectors; do
        for threads in 1 3; do # more documents than are drawn at once
            "$GPUIDX" generate -q -o by$threads --shape=splade --documents=5000 --queries=9 --format=$format -j $threads
        done
    done
    for end in csr queries.csr jsonl queries.jsonl; do
        cmp by1.$end by3.$end
    done
    for format in csr vectors; do
        (
            trap '' XFSZ
            ulimit -f 100
            ask generate -o full --shape=splade --documents=5000 --queries=9 --format=$format
            exits 5
            complains ': File too large'
        )
    done
    [ -z "$(find . -name 'full*')" ]
}

@test "the recall of a collection whose parts are searched apart is that of its run" {
    "$GPUIDX" generate -q --shape=splade --documents=3000 --queries=40 --format=vectors --seed=4 -o s
    python3 - <<'EOF'
import json
lines = [json.loads(line) for line in open("s.jsonl")]
for part in range(3): # whole weights up to 255 in each, so that all have the same unit
    with open(f"{part}.jsonl", "w") as f:
        for i, doc in enumerate(lines[part * 1000:][:1000]):
            doc["vector"] = {t: min(255, max(1, round(90 * w))) for t, w in doc["vector"].items()}
            if i == 0:
                doc["vector"]["most"] = 255
            print(json.dumps(doc), file=f)
EOF
    for i in 0 1 2; do "$GPUIDX" build -qf vectors $i.jsonl -o $i.gx; done
    "$GPUIDX" collect -q 0.gx 1.gx 2.gx -o c
    ask replay -q --engine=cpu --join=never c s.queries.jsonl --run=all.run
    for dial in blocks:3 terms:0.5; do
        ask replay -q --engine=cpu --join=never c s.queries.jsonl --approximate=$dial --run=some.run --force \
            --verify --report=r.json
        exits 0
        python3 - <<'EOF'
import json
def run(name):
    found = {}
    for line in open(name):
        f = line.split()
        found.setdefault(f[0], set()).add(f[2])
    return found
exact, some = run("all.run"), run("some.run")
recall = sum(len(exact[q] & some.get(q, set())) / len(exact[q]) for q in exact) / len(exact)
v = json.load(open("r.json"))["verify"]
assert recall < 1 and abs(v["recall"] - recall) < 1e-6, (v, recall)
EOF
        rm r.json
    done
    ask bench query --engine=cpu --runs=1 -k 10 c s.queries.jsonl
    exits 0
    says 'in 3 parts'
    says_not 'differ'
}

@test "approximate answers have exact scores, are those of a collection's parts, and their recall is told" {
    "$GPUIDX" generate -q --shape=splade --documents=4000 --queries=60 --format=vectors --seed=3 -o s
    "$GPUIDX" build -qf vectors s.jsonl -o s.gx
    ask replay --engine=cpu s.gx s.queries.jsonl --approximate=0.5 --verify --report=r.json
    exits 0
    says 'approximate 0.5'
    says 'recall@10'
    python3 - <<'EOF'
import json
r = json.load(open("r.json"))
assert r["options"]["approximate"] == 0.5, r["options"]
v = r["verify"]
assert v["queries"] == 60 and v["exhaustive_differs"] == 0 and 0.5 < v["recall"] < 1, v
EOF
    ask replay --engine=cpu s.gx s.queries.jsonl --verify --report=e.json
    exits 0
    grep -q '"recall": null' e.json
    # every score is the exact search's
    ask replay -q --engine=cpu s.gx s.queries.jsonl --approximate=0.5 --run=half.run
    ask replay -q --engine=cpu s.gx s.queries.jsonl -k 4000 --run=all.run
    awk 'NR == FNR { score[$1, $3] = $5; next } score[$1, $3] != $5 { exit 1 }' all.run half.run
    ! cmp -s <(cut -d" " -f1,3 half.run) <(awk '$4 <= 10 { print $1, $3 }' all.run)
    # in a cache, by parts and in one file alike
    ask replay -q --engine=cpu s.gx s.queries.jsonl --approximate=0.5 --runs=2 --result-cache=1M --run=cached.run
    cmp half.run cached.run
    ask replay -q --engine=cpu s.gx s.queries.jsonl --result-cache=1M --run=exact.run
    ! cmp -s half.run exact.run
    printf '%s\n' '{"id": 1, "vector": {"a": 3, "b": 255, "c": 1}}' '{"id": 2, "vector": {"a": 7, "c": 255}}' >1.jsonl
    printf '%s\n' '{"id": 3, "vector": {"c": 255, "a": 1}}' '{"id": 4, "vector": {"b": 9, "a": 200}}' >2.jsonl
    cat 1.jsonl 2.jsonl >12.jsonl
    for i in 1 2 12; do "$GPUIDX" build -qf vectors $i.jsonl -o $i.gx; done
    "$GPUIDX" collect -q 1.gx 2.gx -o parts
    for way in --join=never --join=always; do
        for k in 1 2 4; do
            ask query -q --engine=cpu -k $k --approximate=0.3 $way parts --syntax=boolean 'a^3 b^2 c' -f trec
            exits 0
            [ "$output" = "$("$GPUIDX" query -q --engine=cpu -k $k --approximate=0.3 12.gx --syntax=boolean \
                'a^3 b^2 c' -f trec)" ]
        done
    done
    ask query s.gx --approximate=1.5 x
    exits 2
    complains '--approximate'
    printf '.approximate\n.approximate 0.25\n.approximate\n.approximate 7\n' >settings
    ask query -q --engine=cpu s.gx <settings
    says '0.25'
}

@test "a share of terms and a budget of blocks give up some of the answer, alone and together" {
    "$GPUIDX" generate -q --shape=splade --documents=20000 --queries=50 --format=vectors --seed=5 -o s
    "$GPUIDX" build -qf vectors s.jsonl -o s.gx
    "$GPUIDX" replay -q --engine=cpu s.gx s.queries.jsonl -k 20000 --run=all.run
    "$GPUIDX" replay -q --engine=cpu s.gx s.queries.jsonl --run=exact.run
    for x in terms:0.3 blocks:20 terms:0.3,blocks:40; do
        ask replay --engine=cpu s.gx s.queries.jsonl --approximate=$x --verify --report=r.json --run=a.run --force
        exits 0
        says "approximate $(sed 's/^terms:\([^,]*\)$/\1/' <<<$x)"
        says 'recall@10'
        python3 - $x <<'EOF'
import json, sys
r = json.load(open("r.json"))
x = dict(y.split(":") for y in sys.argv[1].split(","))
o, v = r["options"], r["verify"]
assert (o["approximate"] or 0, o["block_budget"]) == (float(x.get("terms", 0)), int(x.get("blocks", 0))), o
assert v["queries"] == 50 and v["exhaustive_differs"] == 0 and 0.1 < v["recall"] < 1, v
EOF
        # every score is the exact search's
        awk 'NR == FNR { score[$1, $3] = $5; next } score[$1, $3] != $5 { exit 1 }' all.run a.run
        # whatever the instruction set, threads, batches, known thresholds and the cache
        GX_CPU=portable ask replay -q --engine=cpu s.gx s.queries.jsonl --approximate=$x --run=b.run --force
        cmp a.run b.run
        ask replay -q --engine=cpu s.gx s.queries.jsonl --approximate=$x --threads=3 --batch=7 --pair-thresholds=20 \
            --runs=2 --result-cache=1M --run=b.run --force
        exits 0
        cmp a.run b.run
    done
    for x in terms:0 blocks:79 blocks:1000000000; do
        ask replay -q --engine=cpu s.gx s.queries.jsonl --approximate=$x --run=a.run --force
        exits 0
        cmp exact.run a.run
    done
    # a collection's parts have their shares of the budget, whatever the threads
    python3 - <<'EOF'
import json
documents = [json.loads(line) for line in open("s.jsonl")]
most = max(max(d["vector"].values(), default=0) for d in documents)
for i, some in (1, documents[:8000]), (2, documents[8000:]):
    with open("%d.jsonl" % i, "w") as f:
        f.writelines(json.dumps(d) + "\n" for d in some + [{"id": "m%d" % i, "vector": {"most": most}}])  # one unit
EOF
    for i in 1 2; do "$GPUIDX" build -qf vectors $i.jsonl -o $i.gx; done
    "$GPUIDX" collect -q 1.gx 2.gx -o parts
    for x in terms:0.3 blocks:20 terms:0.3,blocks:40; do
        for t in 1 3; do
            ask replay -q --engine=cpu --join=never parts s.queries.jsonl --approximate=$x --threads=$t --batch=5 \
                --run=$t.run --force
            exits 0
        done
        cmp 1.run 3.run
    done
    ask replay -q --engine=cpu --join=never parts s.queries.jsonl --approximate=blocks:79 --run=1.run --force
    ask replay -q --engine=cpu --join=never parts s.queries.jsonl --run=3.run --force
    cmp 1.run 3.run
}

@test "what --approximate does not know is named" {
    "$GPUIDX" generate -q --shape=splade --documents=300 --queries=5 --format=vectors -o s
    "$GPUIDX" build -qf vectors s.jsonl -o s.gx
    for x in '' x alpha:2 threshold threshold:1.2 blocks:0 blocks:-1 blocks:1.5 blocks:1e10 \
        terms:2 nan inf 0.5,0.5 blocks:1,blocks:2; do
        ask query --engine=cpu s.gx --approximate="$x" x
        exits 2
        complains '--approximate='
    done
    ask query --engine=hybrid s.gx --approximate=blocks:5 x
    exits 2
    complains 'hybrid'
}

@test "a matrix without --format is refused with the name of its format" {
    csr m.csr 3 50 '[0, 2, 2, 3]' '[7, 49, 7]' '[0.5, 2.0, 1.25]'
    mkdir d
    cp m.csr d
    for corpus in m.csr d; do
        ask build $corpus -o m.gx
        exits 2
        complains 'm.csr, which may be a matrix of vectors (csr): those are not guessed; say it with -f'
        [ ! -e m.gx ]
    done
    cp m.csr m.bin
    ask build m.bin -o m.gx
    exits 2
    complains 'vectors and csr are not guessed); say it with -f'
}

@test "a collection of vectors takes vectors of its unit, and says why it takes no others" {
    printf '{"id":"a","vector":{"t1":1,"t2":0.5}}\n' >v.jsonl
    printf '{"id":"b","vector":{"t1":3.25}}\n' >b.jsonl
    "$GPUIDX" build -q -f vectors v.jsonl -o v.gx --unit=0.25
    "$GPUIDX" collect -q v.gx -o c
    ask add c b.jsonl
    exits 0
    ask query -q --engine=cpu c '{"t1":1}' -f csv
    says '1,1,b,3.25,'
    says '1,2,a,1,'
    ask update -q c -f vectors v.jsonl
    exits 0
    ask info c
    says 'unit         0.25'
    "$GPUIDX" build -q -f vectors b.jsonl -o same.gx --unit=c
    ask info same.gx
    says 'unit         0.25'
    ask add c -f jsonl "$DATA/tiny.jsonl"
    exits 2
    complains 'c holds impacts, of vectors'
    ask add c "$DATA/tiny.jsonl"
    exits 3
    printf '{"id":"z","vector":{"t1":1e6}}\n' >big.jsonl
    ask update c big.jsonl
    exits 3
    complains "the weight of 't1' is 1e+06; the most of the unit 0.25 is 16383.8"
    "$GPUIDX" build -q "$DATA/tiny.jsonl" -o t.gx
    "$GPUIDX" collect -q t.gx -o texts
    ask add texts -f jsonl v.jsonl
    exits 3
    complains 'gpuidx build --format=vectors reads it'
    ask add texts -f vectors v.jsonl
    exits 2
    complains 'texts holds texts'
    "$GPUIDX" recode -q t.gx -o dph.gx --impacts=dph
    "$GPUIDX" collect -q dph.gx -o models
    ask add models v.jsonl
    exits 2
    complains 'impacts that are not of vectors'
    printf '{"id":"w","vector":{"a":3}}\n' >w.jsonl
    "$GPUIDX" build -q -f vectors w.jsonl -o w.gx
    "$GPUIDX" collect -q w.gx -o whole
    ask add whole b.jsonl
    exits 3
    complains 'all weights of whole are whole numbers'
}

@test "a unit is a number, or an index that has one" {
    printf '{"id":"a","vector":{"t1":1,"t2":0.5}}\n' >v.jsonl
    "$GPUIDX" build -q "$DATA/tiny.jsonl" -o t.gx
    "$GPUIDX" build -q -f vectors v.jsonl -o l.gx --scale=list
    for bad in "0|finite number" "-1|finite number" "nan|finite number" "inf|finite number" "1e-50|finite number" \
        "x|no number, and no index" "|no number, and no index" "t.gx|no index of vectors" "l.gx|a unit of its own"; do
        ask build -q -f vectors v.jsonl -o y.gx --unit="${bad%|*}"
        [ "$status" -ne 0 ]
        complains "${bad#*|}"
        [ ! -e y.gx ]
    done
    ask build -q -f vectors v.jsonl -o y.gx --unit=1 --scale=list
    exits 2
    ask build -q "$DATA/tiny.jsonl" -o y.gx --unit=1
    exits 2
    complains 'is of vectors'
    ask add --create -f vectors new v.jsonl
    exits 2
    complains 'give --unit'
    ask add -q --create -f vectors --unit=0.5 new v.jsonl
    exits 0
    printf '{"id":"b","vector":{"t1":3.25}}\n' >b.jsonl
    ask add -q --create -f vectors --unit=0.25 new b.jsonl
    exits 2
    complains 'have the unit 0.5'
    ask add -q --create -f vectors --unit=new new b.jsonl
    exits 0
}
