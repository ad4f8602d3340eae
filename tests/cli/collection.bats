# `gpuidx collect`: several indexes as one; every command takes it where it takes an index.
load cli

# The tiny collection, whole and in three parts.
setup_file() {
    build_tiny
    cd "$BATS_FILE_TMPDIR"
    total=$(grep -c . "$DATA/tiny.jsonl")
    third=$((total / 3))
    head -n "$third" "$DATA/tiny.jsonl" >1.jsonl
    sed -n "$((third + 1)),$((2 * third))p" "$DATA/tiny.jsonl" >2.jsonl
    sed -n "$((2 * third + 1)),\$p" "$DATA/tiny.jsonl" >3.jsonl
    for i in 1 2 3; do
        "$GPUIDX" build -q $i.jsonl --store=text -o $i.gx
    done
    "$GPUIDX" collect -q 1.gx 2.gx 3.gx -o whole
}

parts() {
    cp -r "$BATS_FILE_TMPDIR/whole" here
}

@test "a collection answers as one index of its documents" {
    C=$BATS_FILE_TMPDIR/whole
    printf '%s\n' 'merge find' 'posting lists' 'gpu' 'the block' 'nowhere to be found' >q
    for op in or and and-or; do
        for scorer in bm25 bm25:lucene-lossy impact; do
            "$GPUIDX" query -q "$TINY" --engine=cpu --op=$op --scorer=$scorer -f trec -k 50 <q >one
            "$GPUIDX" query -q "$C" --engine=cpu --op=$op --scorer=$scorer -f trec -k 50 <q >parts
            diff one parts
            "$GPUIDX" query -q "$C" --engine=cpu --join=always --op=$op --scorer=$scorer -f trec -k 50 <q >joined
            diff one joined
        done
    done
    [ -s one ]
    TMPDIR=/nowhere ask query "$C" --engine=cpu --join=always gpu
    exits 5
    complains '/nowhere'
    TMPDIR=/nowhere ask query "$C" --engine=cpu gpu
    exits 0
    for index in "$TINY" "$C"; do
        "$GPUIDX" query -q "$index" --syntax=boolean '+gpu -lists (merge OR block)' --explain |
            sed 's/ in [0-9.]* ms.*//'
        "$GPUIDX" query -q "$index" --rm3 'posting lists' -f trec
        "$GPUIDX" doc "$index" '#3'
        "$GPUIDX" info --json "$index" | python3 -c 'import json, sys
i = json.load(sys.stdin)
print([i[k] for k in ("n_docs", "n_terms", "n_postings", "n_tokens", "avgdl", "min_doc_len", "max_doc_len")])'
    done >both
    n=$(wc -l <both)
    diff <(head -n $((n / 2)) both) <(tail -n $((n / 2)) both)
}

# The rows of two reports of bench query, and whether python's `test` holds of each pair x, y.
compare_rows() {
    python3 - "$1" "$2" "$3" <<'END'
import json, sys
a, b = (json.load(open(name)) for name in sys.argv[1:3])
assert len(a["rows"]) == len(b["rows"]) > 0
for x, y in zip(a["rows"], b["rows"]):
    assert (x["op"], x["k"], x["algorithm"]) == (y["op"], y["k"], y["algorithm"])
    assert x["different"] == y["different"] == 0, x
    assert eval(sys.argv[3], {"x": x, "y": y}), (x, y)
END
}

@test "bench query counts what all parts read: the sums of the parts alone" {
    C=$BATS_FILE_TMPDIR/whole
    printf '%s\n' 'merge find' 'posting lists' 'gpu' 'only compression' 'compression of lists' 'document' >q
    bench() {
        "$GPUIDX" bench query -q --engine=cpu --runs=1 -k 2,50 --algorithm=auto,pmf,taat,block-max --format=json "$@"
    }
    bench "$C" q >whole.json
    bench --join=always "$C" q >joined.json
    for part in 1 2 3; do
        bench "$BATS_FILE_TMPDIR/$part.gx" q >$part.json
    done
    python3 -c 'import json
whole, joined, *parts = (json.load(open(name + ".json")) for name in ("whole", "joined", "1", "2", "3"))
assert whole["collection"] == {"parts": 3, "deleted_documents": 0} and "collection" not in parts[0], whole
assert [r["engines"][0]["searched_parts"] for r in (whole, joined, parts[0])] == [3, 1, 1], whole
assert whole["documents"] == joined["documents"] == sum(p["documents"] for p in parts), whole
assert whole["postings"] == joined["postings"] == sum(p["postings"] for p in parts), whole
assert len(whole["rows"]) == 24 and any(0 < x["and_fell_to_or"] < 1 for x in whole["rows"]), whole
for x, j, *ys in zip(whole["rows"], joined["rows"], *(p["rows"] for p in parts)):
    total = lambda name: sum(y[name] for y in ys)
    assert x["different"] == j["different"] == 0, x
    for name in ("postings", "blocks"):
        # where an AND is enough, parts that lack a word are not read; alone, they are searched by OR
        few = x["op"] == "and-or" and x["and_fell_to_or"] < 1
        assert abs(x[name] - total(name)) < 1e-6 or (few and x[name] < total(name)), (name, x, ys)
    if x["algorithm"] in ("pmf", "taat"): # these use no threshold, which a part has from those before
        for name in ("blocks_decoded", "lookups"):
            assert x["op"] == "and-or" or abs(x[name] - total(name)) < 1e-6, (name, x, ys)
    if x["op"] == "or" and x["algorithm"] == "taat":
        assert x["blocks_decoded"] == x["blocks"] and abs(x["bytes_read"] - total("bytes_read")) < 1e-3, (x, ys)
    if x["op"] == "or" or (x["op"] == "and-or" and x["k"] == 50): # an AND reads no part that lacks a word
        assert abs(j["postings"] - x["postings"]) < 1e-6, (x, j)
    assert x["fixed_us"] >= 0, x'
    # the same, by the statistics of the terms
    printf '%s\n' 'compression' >q
    bench "$C" q >whole.json
    for part in 1 2 3; do
        "$GPUIDX" term -f json "$BATS_FILE_TMPDIR/$part.gx" compression
    done >terms
    python3 -c 'import json
terms = [json.loads(line) for line in open("terms")]
for x in json.load(open("whole.json"))["rows"]:
    assert x["postings"] == sum(t["df"] for t in terms) and x["blocks"] == sum(t["blocks"] for t in terms), x
    if x["op"] == "or" and x["algorithm"] == "taat":
        assert x["bytes_read"] == sum(t["docid_bytes"] + t["tf_bytes"] for t in terms), (x, terms)'
}

@test "bench query measures a collection with deleted documents, and of one part" {
    parts
    printf '%s\n' 'compression' 'posting lists' 'compression of lists' 'merge find' >q
    bench() {
        "$GPUIDX" bench query -q --engine=cpu --runs=1 -k 2,50 --algorithm=auto,pmf,taat --format=json "$@"
    }
    bench here q >before
    printf 'd03\nd10\n' >gone
    "$GPUIDX" delete -q here --merge=none --ids=gone
    bench here q >after
    compare_rows after before 'x["op"] != "or" or (x["postings"], x["blocks"]) == (y["postings"], y["blocks"])'
    python3 -c 'import json
before, after = json.load(open("before")), json.load(open("after"))
n = after["collection"]["deleted_documents"]
assert n > 0 and after["documents"] == before["documents"] - n and after["postings"] < before["postings"], after'
    ask bench query -q --engine=cpu --runs=1 -k 2 --op=or here q
    exits 0
    says ' in 3 parts, which still hold '
    ask bench query -q --engine=cpu --runs=1 -k 2 --op=or --table=2 here q
    exits 2
    ask bench query -q --engine=cpu --runs=1 -k 2 --table=3 here q --format=csv
    exits 0
    ask bench query -q --engine=cpu --runs=1 --figure=recall -k 2 here q --format=csv
    exits 0
    [[ $(sed -n 2p <<<"$output") == cpu,2,1,0,1.00000,* ]]
    ask bench query -q --engine=cpu --runs=1 -k 2 --op=and-or --algorithm=auto --plot=drawn here q
    exits 0
    [ "$(grep -c '^[0-9]' drawn/postings.gp)" = 4 ]

    "$GPUIDX" collect -q "$BATS_FILE_TMPDIR/1.gx" -o one
    bench one q >one.json
    bench "$BATS_FILE_TMPDIR/1.gx" q >file.json
    compare_rows one.json file.json 'all(x[name] == y[name] for name in ("postings", "blocks", "blocks_decoded",
        "lookups", "bytes_read", "and_fell_to_or"))'
    "$GPUIDX" delete -q one --merge=none --ids=gone
    bench one q >one-with-deletes.json
    # a word that deleted documents alone have is unknown
    compare_rows one-with-deletes.json file.json 'x["op"] != "or" or 0 < x["postings"] < y["postings"]'
}

@test "what is of one index file alone is refused of a collection, and says what to do" {
    C=$BATS_FILE_TMPDIR/whole
    printf '%s\n' 'merge find' >q
    for command in 'bench query' replay; do
        ask $command --engine=cpu --pair-thresholds=4 "$C" q
        exits 2
        complains "thresholds of pairs are those of one index file, which \`gpuidx recode\` makes of it"
    done
    ask query --engine=hybrid "$C" gpu
    exits 2
    complains 'gpuidx recode'
    ask reorder "$C" -o ordered.gx
    exits 2
    complains 'recode'
}

@test "bench codecs measures the lists of all parts" {
    C=$BATS_FILE_TMPDIR/whole
    printf '%s\n' 'only compression' 'document' 'gpu' 'compression' 'document' >q
    for index in "$C" "$BATS_FILE_TMPDIR"/[123].gx; do
        ask bench codecs -q --engine=cpu --index="$index" --queries=q --codecs=raw --format=json
        exits 0
        printf '%s\n' "$output" >"$(basename "$index").json"
        ask bench codecs -q --engine=cpu --table=2 --index="$index" --codecs=raw,gpubp128 --format=csv
        exits 0
        grep -Eq '^GPU-BP128,[0-9.]+,[0-9.]+,[0-9.]+$' <<<"$output"
    done
    python3 -c 'import json
whole, *parts = (json.load(open(name + ".json")) for name in ("whole", "1.gx", "2.gx", "3.gx"))
assert whole["queries"] == 5 and whole["lists"] == sum(p["lists"] for p in parts) > 0, (whole, parts)'
}

@test "what a killed collect has left goes, and nothing else" {
    for name in left busy; do
        mkdir c.0123456789abcde$((++n)).tmp
        ln "$BATS_FILE_TMPDIR/1.gx" c.0123456789abcde$n.tmp/part-000001.gx
        : >c.0123456789abcde$n.tmp/.gpuidx-0123456789abcdef.tmp
    done
    mkdir other.0123456789abcdef.tmp c.tmp
    : >other.0123456789abcdef.tmp/mine
    exec 7<c.0123456789abcde2.tmp
    flock 7 # as another collect does that lives
    "$GPUIDX" collect -q "$BATS_FILE_TMPDIR/1.gx" -o c
    [ "$(ls | tr '\n' ' ')" = "c c.0123456789abcde2.tmp c.tmp other.0123456789abcdef.tmp " ]
    "$GPUIDX" check -q c
    "$GPUIDX" check -q "$BATS_FILE_TMPDIR/1.gx"
}

@test "a collection is checked, exported and made one index" {
    C=$BATS_FILE_TMPDIR/whole
    ask check "$C"
    exits 0
    "$GPUIDX" export -q "$TINY" -o one.ciff
    "$GPUIDX" export -q "$C" -o parts.ciff
    cmp one.ciff parts.ciff
    ask recode -q "$C" -o flat.gx
    exits 0
    ask check flat.gx
    exits 0
    printf 'q\tgpu lists\n' >log
    "$GPUIDX" replay -q "$TINY" log --run one.run >/dev/null
    "$GPUIDX" replay -q "$C" log --run parts.run --verify=1 >/dev/null
    "$GPUIDX" replay -q flat.gx log --run flat.run >/dev/null
    cmp one.run parts.run
    cmp one.run flat.run
    ask reorder -q "$C" -o x.gx --by=bp
    [ "$status" -ne 0 ]
    ask replay "$C" log --pair-thresholds=2
    exits 2
    complains 'thresholds of pairs'
}

@test "parts that do not fit together are refused, by name" {
    D=$BATS_FILE_TMPDIR
    "$GPUIDX" build -q "$D/2.jsonl" --store=text --stemmer=none -o stem.gx
    "$GPUIDX" build -q "$D/2.jsonl" --store=text --codec=gpubp256 -o blocks.gx
    "$GPUIDX" build -q "$D/2.jsonl" -o bare.gx
    "$GPUIDX" build -q "$D/2.jsonl" --store=text --attr year:int -o years.gx
    for other in 'stem another analyzer' 'blocks blocks of 256' 'bare stores no texts' 'years other attributes'; do
        ask collect "$D/1.gx" ${other%% *}.gx -o C
        exits 2
        complains "${other#* }"
        [ ! -e C ]
    done
    ask collect "$D/1.gx" "$D/1.gx" -o C
    exits 2
    complains 'both have a document'
    ask collect "$D/1.gx" "$D/whole" -o C
    exits 2
    complains 'is a collection itself'
    ask collect "$D/1.gx" nosuch.gx -o C
    [ "$status" -ne 0 ]
    complains 'nosuch.gx'
    ask collect "$D/1.gx" -o "$D/whole"
    [ "$status" -ne 0 ]
    complains 'exists'
    [ -z "$(find . -name '*.tmp')" ]
}

@test "damage is told, naming the file" {
    parts
    rm here/part-000002.gx
    ask query here gpu
    exits 4
    complains 'part-000002.gx'
    cp "$BATS_FILE_TMPDIR/1.gx" here/part-000002.gx
    ask query here gpu
    exits 4
    complains 'UUID'
    rm -r here
    parts
    truncate -s -20 here/MANIFEST
    ask query here gpu
    exits 4
    complains 'here/MANIFEST'
    for bytes in 0 5 30; do
        truncate -s $bytes here/MANIFEST
        ask check here
        exits 1
        complains 'cut short'
    done
    rm here/MANIFEST
    ask query here gpu
    [ "$status" -ne 0 ]
    complains 'no collection'
    rm -r here
    parts
    sed 's/"part-000002.gx"/"..\/x.gx"/' here/MANIFEST >new
    mv new here/MANIFEST
    ask query here gpu
    exits 4
    complains 'checksum'
}

@test "documents are added, updated and deleted, and answers are those of a fresh build" {
    parts
    grep -n '' "$DATA/tiny.jsonl" | sed 's/^[0-9]*://' >all.jsonl
    sed -n '1,4p' all.jsonl | python3 -c 'import json, sys
for line in sys.stdin:
    d = json.loads(line)
    key = [k for k in d if k in ("id", "_id", "docid")][0]
    old = d[key]
    d["title"] = "gpu lists anew"
    print(json.dumps(d))' >new.jsonl
    ask add here new.jsonl
    exits 3
    complains 'new.jsonl:1: the id'
    ask update here new.jsonl
    exits 0
    (sed '1,4d' all.jsonl && cat new.jsonl) >live.jsonl
    "$GPUIDX" build -q live.jsonl --store=text -o live.gx
    same() {
        for query in 'gpu lists' 'merge find' block; do
            diff <("$GPUIDX" query -q live.gx --engine=cpu -f trec -k 50 "$query") \
                <("$GPUIDX" query -q here --engine=cpu -f trec -k 50 "$query")
        done
        cmp <("$GPUIDX" export -q live.gx -o - -f ciff) <("$GPUIDX" export -q here -o - -f ciff)
    }
    same
    ask delete here --query 'anew gpu' --merge=none
    exits 0
    complains '4 deleted'
    sed '1,4d' all.jsonl >live.jsonl
    "$GPUIDX" build -q live.jsonl --store=text -o live.gx --force
    same
    ask merge here --policy=all
    exits 0
    complains 'in 1 part'
    same
    [ "$(find here -name 'part-*' | wc -l)" -eq 1 ]
    "$GPUIDX" doc live.gx '#0' -f json | python3 -c 'import json, sys; print(json.load(sys.stdin)["id"])' >ids
    echo nosuch >>ids
    ask delete here --ids ids
    exits 0
    complains '1 deleted'
    sed '1d' live.jsonl >l && mv l live.jsonl
    "$GPUIDX" build -q live.jsonl --store=text -o live.gx --force
    same
    ask delete here
    exits 2
    ask add here all.jsonl --on-error=skip --commit-every=1
    exits 0
    ask check here
    exits 0
    ask add "$TINY" all.jsonl
    [ "$status" -ne 0 ]
    ask add nosuch all.jsonl
    [ "$status" -ne 0 ]
}

@test "what is deleted may be said by conditions in a boolean query" {
    parts
    first=$("$GPUIDX" query here -q --engine=cpu -k 1 -f tsv gpu | cut -f2)
    before=$("$GPUIDX" query here -q --engine=cpu -k 1000 -f tsv gpu | wc -l)
    ask delete here --syntax=boolean --query "gpu AND id:$first"
    exits 0
    complains '1 deleted'
    printf '%s\n' "$first" >gone
    [ "$("$GPUIDX" query here -q --engine=cpu -k 1000 -f tsv --syntax=boolean "gpu OR id:$first" | wc -l)" -eq \
        $((before - 1)) ]
    ask delete here --syntax=boolean --query 'nowhere OR id:@gone'
    exits 0
    [ "$("$GPUIDX" query here -q --engine=cpu -k 1000 -f tsv gpu | wc -l)" -eq $((before - 1)) ]
}

@test "a query of all documents deletes them with --all alone" {
    parts
    before=$("$GPUIDX" query here -q --engine=cpu -k 1000 -f tsv '' | wc -l)
    for query in '' ' '; do
        ask delete here --query "$query"
        exits 2
        complains '--all deletes them'
    done
    ask delete here --syntax=boolean --query ' *'
    exits 2
    complains "matches all documents; --all deletes them"
    ask delete here
    exits 2
    ask delete here --all --query gpu
    exits 2
    [ "$("$GPUIDX" query here -q --engine=cpu -k 1000 -f tsv '' | wc -l)" -eq "$before" ]
    first=$("$GPUIDX" query here -q --engine=cpu -k 1 -f tsv '' | cut -f2)
    ask delete here --all --query '*' --syntax=boolean --filter "id:$first"
    exits 0
    complains '1 deleted'
    [ "$("$GPUIDX" query here -q --engine=cpu -k 1000 -f tsv '' | wc -l)" -eq $((before - 1)) ]
    ask delete here --all
    exits 0
    complains '0 documents in 1 part'
}

@test "everything can be deleted, and documents added again" {
    parts
    "$GPUIDX" query here -q --engine=cpu -k 1000 -f tsv gpu >before
    ask delete here --query 'a' --syntax=boolean --op=or
    ask delete here --filter 'NOT id:nosuch'
    exits 0
    complains '0 documents in 1 part'
    ask query here gpu
    exits 0
    ask info here
    exits 0
    ask add here "$DATA/tiny.jsonl"
    exits 0
    diff before <("$GPUIDX" query here -q --engine=cpu -k 1000 -f tsv gpu)
}

@test "one process changes a collection at a time" {
    parts
    exec 7>here/LOCK
    flock 7
    ask delete here --query gpu
    exits 5
    complains 'being changed by another process'
    flock -u 7
    ask delete here --query gpu
    exits 0
}

@test "a result cache knows queries whose conditions alone match from those that need a word" {
    for p in 1 2; do
        seq 60 | awk -v p=$p '{ printf "{\"id\": \"%d-%d\", \"text\": \"%s\", \"year\": %d}\n", p, $1,
                              $1 % 10 ? "b c" : "a b", 2000 + $1 % 3 }' >$p.jsonl
        "$GPUIDX" build -q --analyzer=whitespace --attr=year:int $p.jsonl -o $p.gx
    done
    "$GPUIDX" collect -q 1.gx 2.gx -o c
    printf '%s\t%s\n' 1 '+year:2000 a' 2 'a AND year:2000' 3 '+year:2000 a' >log.tsv
    for join in never always; do
        ask replay -q --engine=cpu --syntax=boolean --batch=1 --join=$join -k 100 --result-cache=1M c log.tsv \
            --run=$join.run
        exits 0
        [ "$(cut -d' ' -f1 $join.run | uniq -c | tr -s ' ')" = $' 40 1\n 4 2\n 40 3' ]
    done
}

@test "a query that waits for its next line sees the commits in between" {
    parts
    rm -f in
    mkfifo in
    "$GPUIDX" query here -q --engine=cpu -f tsv -k 1000 <in >out &
    exec 8>in
    echo 'gpu' >&8
    wait_until grep -q . out # an answer; so the process has read its line
    printf '{"id":"new1","text":"a zebrafish"}\n' >new.jsonl
    "$GPUIDX" add -q here new.jsonl
    echo 'zebrafish' >&8
    wait_until grep -q new1 out
    echo new1 >ids
    "$GPUIDX" delete -q here --ids ids
    echo 'zebrafish' >&8
    exec 8>&-
    wait
    [ "$(grep -c new1 out)" -eq 1 ]
}

# 200 documents, and an index of them.
build_numbers() {
    seq 0 199 | awk '{ printf "{\"id\":\"d%d\",\"text\":\"all w%d\",\"n\":%d}\n", $1, $1, $1 }' >d.jsonl
    "$GPUIDX" build -q d.jsonl -o d.gx --attr n:int
    "$GPUIDX" collect -q d.gx -o c
}

count_all() {
    "$GPUIDX" query -q "$1" --engine=cpu all -k 100000 -f tsv | wc -l
}

@test "titles of later documents are kept where the first have none" {
    CASES=$DATA/cases/hostile
    for store in text title; do
        "$GPUIDX" build -q "$CASES/untitled.jsonl" -o a.gx --store=$store --force
        rm -rf c
        "$GPUIDX" collect -q a.gx -o c
        "$GPUIDX" add -q c "$CASES/titled.jsonl"
        ask query c --engine=cpu bird -f jsonl
        says '"title":"A Title"'
    done
    "$GPUIDX" build -q "$CASES/titled.jsonl" -o a.gx --store=none --force
    rm -rf c
    "$GPUIDX" collect -q a.gx -o c
    "$GPUIDX" delete -q c --filter 'NOT id:nosuch'
    "$GPUIDX" add -q c "$CASES/titled.jsonl"
    ask query c --engine=cpu bird -f jsonl
    exits 0
    ! grep -q 'A Title' <<<"$output"
}

@test "what is committed is no failure where the merge behind it fails" {
    for part in 0 1 2 3; do
        awk -v f=$part 'BEGIN { srand(f + 1); for (d = 0; d < 1500; ++d) {
            printf "{\"id\":\"p%d-%d\",\"text\":\"all ", f, d
            for (w = 0; w < 40; ++w) printf "w%d ", rand() * 5000; print "\"}" } }' >part$part.jsonl
    done
    "$GPUIDX" build -q part0.jsonl -o a.gx --store=text
    "$GPUIDX" collect -q a.gx -o c
    "$GPUIDX" add -q c part1.jsonl --merge=none
    "$GPUIDX" add -q c part2.jsonl --merge=none
    for every in 100000 500; do
        rm -rf here
        "$GPUIDX" collect -q c -o here
        (ulimit -f 800 && ask add here part3.jsonl --commit-every=$every && exits 0 &&
            complains 'is in place, but parts could not be merged' && complains 'gpuidx merge here' &&
            [ "$(grep -c 'could not be merged' <<<"$stderr")" -eq 1 ])
        [ "$(count_all here)" -eq 6000 ]
        (ulimit -f 200 && ask merge here --policy=all && exits 5)
        [ "$(count_all here)" -eq 6000 ]
        ask merge here
        exits 0
        ask check here
        exits 0
        (ulimit -f 800 && ask delete here --query w1 && exits 0)
        [ "$(count_all here)" -lt 6000 ]
    done
}

@test "a command that ends at a bad document says what is committed" {
    build_numbers
    seq 0 9 | awk '{ printf "{\"id\":\"n%d\",\"text\":\"all\"}\n", $1 }' >more.jsonl
    echo '{"id":"d7","text":"all"}' >>more.jsonl
    ask add c more.jsonl --commit-every=4
    exits 3
    complains 'the first 8 are committed'
    complains 'the 2 behind them are not'
    [ "$(count_all c)" -eq 208 ]
    ask add c more.jsonl
    exits 3
    [ "$(count_all c)" -eq 208 ]
}

@test "check reads deletes, and compares parts" {
    ask check "$DATA/cases/hostile/deletes_disagree"
    exits 1
    complains 'part-000001.000002.del'
    ask check --level=structure "$DATA/cases/hostile/deletes_disagree"
    exits 0
    "$GPUIDX" check -q "$BATS_FILE_TMPDIR/whole"
}

@test "what check takes can be written again, whatever bitmap columns were asked for" {
    cp "$DATA/cases/hostile/asked_bins.gx" a.gx
    ask check a.gx
    exits 0
    ask recode a.gx -o b.gx
    exits 0
    ask reorder a.gx -o r.gx
    exits 0
    ask collect a.gx -o c
    exits 0
    echo '{"id":"new","text":"hello new"}' >new.jsonl
    ask add c new.jsonl
    exits 0
    ask merge c --policy=all
    exits 0
    ask export a.gx --attributes -o t.tsv
    [ "$status" -eq 0 ] || [ "$status" -eq 2 ]
}

@test "a reader goes on while the folder is away, and sees what comes in its place" {
    build_numbers
    mkfifo in
    "$GPUIDX" query c -q --engine=cpu -f tsv -k 1000 <in >out 2>err &
    exec 8>in
    echo w1 >&8
    wait_until grep -q d1 out
    mv c away
    echo w2 >&8
    wait_until grep -q d2 out
    echo w3 >&8
    wait_until grep -q d3 out
    grep -q 'stays in use' err
    [ "$(grep -c 'stays in use' err)" -eq 1 ]
    mkdir c # no collection
    echo w4 >&8
    wait_until grep -q d4 out
    rmdir c
    mv away c
    echo '{"id":"new1","text":"zebrafish","n":1}' >new.jsonl
    "$GPUIDX" add -q c new.jsonl
    echo zebrafish >&8
    wait_until grep -q new1 out
    exec 8>&-
    wait $!
    for path in nosuch nosuch/c d.gx; do
        ask delete $path --query all
        [ "$status" -ne 0 ]
        ! grep -q 'is a folder' <<<"$stderr"
    done
}

@test "collect copies a collection that others change" {
    build_numbers
    "$GPUIDX" delete -q c --filter 'n:<10'
    (for i in $(seq 40); do
        echo "{\"id\":\"x$i\",\"text\":\"all\",\"n\":$i}"
    done >x.jsonl)
    "$GPUIDX" add -q c x.jsonl --commit-every=1 &
    for i in $(seq 8); do
        ask collect c -o copy$i
        exits 0
        ask check copy$i
        exits 0
    done
    wait
    ask collect c -o copy
    complains '230 documents'
    cmp <("$GPUIDX" export -q c -o - -f ciff) <("$GPUIDX" export -q copy -o - -f ciff)
    cmp c/MANIFEST copy/MANIFEST
    [ ! -e copy/LOCK ]
    echo '{"id":"other","text":"all"}' | "$GPUIDX" add -q copy -f jsonl -
    [ "$(count_all copy)" -eq 231 ]
    [ "$(count_all c)" -eq 230 ]
    ask collect c -o copy
    exits 5
    ask collect c d.gx -o both
    exits 2
    complains 'is a collection itself'
}

@test "a command waits for the lock where it is told to" {
    build_numbers
    exec 7>>c/LOCK
    flock 7
    echo '{"id":"new1","text":"all"}' >new.jsonl
    ask add c new.jsonl
    exits 5
    ask add c new.jsonl --wait=0.05
    exits 5
    "$GPUIDX" add -q c new.jsonl --wait &
    "$GPUIDX" delete -q c --filter n:5 --wait=60 &
    sleep 0.2
    [ "$(count_all c)" -eq 200 ]
    flock -u 7
    wait
    [ "$(count_all c)" -eq 200 ]
    ask query c --engine=cpu all -k 1000 -f tsv
    says new1
    ! grep -q "	d5	" <<<"$output"
}

@test "add makes a collection that is not there" {
    printf '%s\n' '{"id":"a","title":"A","text":"The cats","y":1}' '{"id":"b","text":"a cat","y":2}' >1.jsonl
    printf '%s\n' '{"id":"c","text":"cat","y":2}' >2.jsonl
    ask add c 1.jsonl
    [ "$status" -ne 0 ]
    [ ! -e c ]
    ask add c 1.jsonl --analyzer=simple
    exits 2
    ask add c 1.jsonl --create --attr y:int --store=text --analyzer=simple
    exits 0
    complains '2 documents in 1 part'
    ask add c 2.jsonl --create --attr y:int --store=text --analyzer=simple
    exits 0
    ask add c --create 2.jsonl
    exits 3
    "$GPUIDX" build -q 1.jsonl 2.jsonl -o x.gx --attr y:int --store=text --analyzer=simple
    cmp <("$GPUIDX" export -q c -o - -f ciff) <("$GPUIDX" export -q x.gx -o - -f ciff)
    ask query c --engine=cpu cat --filter y:2 -f tsv
    [ "$(wc -l <<<"$output")" -eq 2 ]
    for other in '--attr y:float' '--attr z:int' '--analyzer=english' '--store=title' '--store=none' \
        '--codec=lane1024' '--fold=unicode' '--stemmer=porter' '--stopwords=lucene'; do
        ask add c --create 2.jsonl --attr y:int --store=text --analyzer=simple $other
        exits 2
    done
    ask add x.gx --create 2.jsonl
    [ "$status" -ne 0 ]
}
