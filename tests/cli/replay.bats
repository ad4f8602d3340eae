# `gpuidx replay`: reports, runs, verifying, and what bad logs get.
load cli

setup_file() { build_tiny; }

setup() {
    cd "$BATS_TEST_TMPDIR"
    printf '%s\n' '1:skipping blocks' '2:compression' '3:' '4:zzz' >log
}

@test "the report says what was measured" {
    ask replay -q --engine=cpu "$TINY" log
    exits 0
    silent
    says '4 queries (efficiency; 1 empty)'
    says 'queries/s'
    for word in mean p50 p90 p95 p99 p99.9 max 'without results' 'postings of the terms' 'block decodings'; do
        says "$word"
    done
}

@test "blank lines are passed over and counted, and bench query has the same queries" {
    printf '%s\n' 'skipping blocks' '' '  ' compression >blank
    ask replay --engine=cpu "$TINY" blank --report=report.json --run=run
    exits 0
    says '2 queries (lines; 2 blank lines passed over)'
    [ "$(cut -d' ' -f1 run | uniq)" = $'1\n4' ]
    python3 -c '
import json
o = json.load(open("report.json"))
assert o["log"]["queries"] == 2 and o["log"]["blank_lines"] == 2, o'
    for log in blank log; do
        ask bench query --engine=cpu --runs=1 "$TINY" $log --op=or -k 2 --algorithm=auto
        exits 0
        says "$(("$(grep -vc '^ *$' $log)")) queries;"
    done
    printf '\n \n' >none
    ask replay --engine=cpu "$TINY" none
    exits 3
    ask bench query --engine=cpu "$TINY" none
    exits 3
    complains '2 blank lines passed over'
}

@test "--report is the same as JSON" {
    ask replay -q --engine=cpu "$TINY" log --report report.json --runs 3 --warmup 2 --batch 2 --verify
    exits 0
    python3 -c '
import json
o = json.load(open("report.json"))
assert o["schema"] == 1 and o["queries"] == 12 and o["log"]["queries"] == 4 and o["log"]["empty"] == 1
assert o["queries_without_results"] == 6 and o["engine"]["kind"] == "cpu" and o["options"]["batch"] == 2
l = o["latency_us"]
assert l["of"] == "batch" and 0 <= l["min"] <= l["p50"] <= l["p90"] <= l["p95"] <= l["p99"] <= l["p99.9"] <= l["max"]
assert o["queries_per_second"] > 0 and o["work"]["postings"] > 0
assert o["verify"]["queries"] == 4 and o["verify"]["exhaustive_differs"] == 0'
}

@test "--warm reads a log, and the CPU engine has no lists elsewhere" {
    ask replay -q --engine=cpu "$TINY" log --warm=log --resident=10% --residency-policy=static --report r.json
    exits 0
    silent
    says_not 'in GPU memory'
    grep -q '"residency": null' r.json
    ask replay --engine=cpu "$TINY" log --warm=nowhere
    exits 5
    complains nowhere
}

@test "--report=- prints JSON and nothing else" {
    ask replay -q --engine=cpu "$TINY" log --report -
    exits 0
    python3 -c 'import json, sys; json.load(sys.stdin)' <<<"$output"
}

@test "a run has the documents, ranks and scores of query" {
    printf '1\tskipping blocks\n2\tcompression\n' >log.tsv
    ask replay --engine=cpu "$TINY" log.tsv --run - --run-tag mine
    exits 0
    complains 'queries/s'
    "$GPUIDX" query -q --engine=cpu --format=trec --run-tag mine "$TINY" <log.tsv >expected
    python3 - expected .stdout <<'END'
import sys
rows = [[l.split() for l in open(f)] for f in sys.argv[1:]]
assert rows[0] and len(rows[0]) == len(rows[1])
for a, b in zip(*rows):
    assert a[:4] == b[:4] and a[5] == b[5] == "mine" and abs(float(a[4]) - float(b[4])) < 1e-7 * float(a[4])
END
}

@test "every form of log gives the same run" {
    printf 'skipping blocks\ncompression\n' >lines
    printf '1:skipping blocks\n2:compression\n' >efficiency
    printf '1\tskipping blocks\r\n2\tcompression\r\n' >tsv
    printf '{"id": 1, "query": "skipping blocks"}\n{"_id": "2", "text": "compression"}\n' >jsonl
    printf '<top>\n<num> Number: %s\n<title> %s\n</top>\n' 1 'skipping blocks' 2 compression >topics
    gzip -k jsonl
    for form in lines efficiency tsv jsonl topics; do
        ask replay --engine=cpu "$TINY" $form --run $form.run
        exits 0
        says "2 queries ($form)"
        cmp lines.run $form.run
    done
    ask replay --engine=cpu "$TINY" jsonl.gz --run gz.run
    exits 0
    cmp lines.run gz.run
    ask replay --engine=cpu "$TINY" - --run stdin.run <topics
    exits 0
    cmp lines.run stdin.run
}

@test "threads leave the run as it is" {
    for i in $(seq 500); do echo "skipping blocks compression $i"; done >many
    ask replay --engine=cpu "$TINY" many --run one.run
    exits 0
    ask replay --engine=cpu "$TINY" many --run two.run --threads 4 --batch 7
    exits 0
    cmp one.run two.run
}

@test "bad lines fail with exit code 3 and leave no run, or are passed over" {
    printf '1:a\nb\n3:compression\n' >bad
    ask replay --engine=cpu "$TINY" bad -f efficiency --run bad.run
    exits 3
    complains 'bad:2: no ":"'
    [ -z "$(ls | grep run)" ]
    ask replay --engine=cpu "$TINY" bad -f efficiency --on-error=skip --run bad.run
    exits 0
    complains 'bad:2: no ":"'
    says '1 refused'
    [ -s bad.run ]
}

@test "a query of 1,025 terms is named" {
    { printf '1:'; seq -s ' ' 1025; } >long
    ask replay --engine=cpu "$TINY" long -f efficiency
    exits 3
    complains 'long:1: '
    complains 1024
}

@test "an absent log is exit code 5, bad options are 2" {
    ask replay --engine=cpu "$TINY" absent
    exits 5
    complains absent
    ask replay --engine=cpu "$TINY" log --runs 0
    exits 2
    ask replay --engine=cpu "$TINY" - --runs 2 <log
    exits 2
    complains 'only once'
    ask replay --engine=cpu "$TINY" log --run - --report -
    exits 2
    ask replay --engine=cpu "$TINY" log --run no/such/folder/x.run
    exits 5
    complains no/such/folder
}

@test "a log without queries and a file that is no text are exit code 3" {
    : >none
    for ask in 'replay --run none.run' 'bench query --runs=1'; do
        ask $ask --engine=cpu "$TINY" none
        exits 3
        complains 'none has no query'
        ask $ask --engine=cpu "$TINY" "$TINY"
        exits 3
        complains 'tiny.gx: byte 9 is NUL'
    done
    [ ! -e none.run ]
    for form in lines efficiency; do
        ask replay --engine=cpu "$TINY" "$TINY" -f $form --on-error=skip
        exits 3
        complains 'tiny.gx: byte 9 is NUL'
    done
    printf 'merge\0find\n' >log
    ask replay --engine=cpu "$TINY" log
    exits 0
    says '1 NUL byte read as blanks'
}

@test "an interrupt ends a wait for the next query" {
    yes 'skipping blocks compression' | head -n 20 >many
    interrupt INT replay -q --engine=cpu "$TINY" many --rate 1e-6 -j 2 --run many.run # the next is due after 11 days
    exits 130
    complains interrupted
    [ -z "$(ls | grep run)" ]
}

@test "queries arrive at random or by a trace, and late ones are counted" {
    yes 'skipping blocks compression' | head -n 20 >many
    ask replay --engine=cpu "$TINY" many --rate 1000 --arrivals=poisson --seed 7 --deadline 0.000001 --report r.json
    exits 0
    says '1000 queries/s offered by a Poisson process of seed 7'
    says '20 queries later than the deadline' # no processor answers within a nanosecond
    grep -q '"late": 20' r.json
    grep -q '"arrivals": "poisson"' r.json
    grep -q '"seed": 7' r.json
    seq 101 120 | sed 's/^/0./' >trace
    ask replay --engine=cpu "$TINY" many --arrivals=trace --trace trace --deadline 1e9
    exits 0
    says 'queries arrive at the times of trace'
    says '0 queries later than the deadline of'
    head -n 19 trace >short
    ask replay --engine=cpu "$TINY" many --arrivals=trace --trace short --run many.run
    exits 3
    complains 'short has arrival times for 19 queries, and the log has more'
    [ ! -e many.run ]
    echo x >>short
    ask replay --engine=cpu "$TINY" many --arrivals=trace --trace short
    exits 3
    complains 'short:20: an arrival time is a number of seconds'
    ask replay --engine=cpu "$TINY" many --arrivals=poisson
    exits 2
    complains 'needs --rate'
    ask replay --engine=cpu "$TINY" many --trace trace
    exits 2
    complains 'go together'
    ask replay --engine=cpu "$TINY" many --rate 5 --seed 3
    exits 2
    complains '--seed'
}

@test "a result cache answers queries that come again, with the same run" {
    printf 'merge find\nblock skipping\nmerge find\nfind merge\nblock skipping\n' >again
    ask replay --engine=cpu "$TINY" again --run plain.run
    exits 0
    ask replay --engine=cpu "$TINY" again --run cached.run --result-cache 1M --report r.json --verify
    exits 0
    says '3   60.0 % of the queries'
    cmp plain.run cached.run
    grep -q '"cached": 3' r.json
    grep -q '"result_cache": 1048576' r.json
    grep -q '"exhaustive_differs": 0' r.json
}

@test "an interrupt ends it and leaves no run" {
    yes 'skipping blocks compression' | head -n 20000 >many
    interrupt TERM replay -q --engine=cpu "$TINY" many --rate 50 --run many.run
    exits 143
    complains interrupted
    [ -z "$(ls | grep run)" ]
}

@test "an output never replaces what is replayed, and nothing unasked" {
    cp "$TINY" mine.gx
    printf 'merge find\n' >log
    ask replay --engine=cpu mine.gx log --run log
    exits 2
    complains 'log is read by this replay'
    ask replay --engine=cpu mine.gx log --report ./mine.gx --force
    exits 2
    [ "$(cat log)" = 'merge find' ]
    cmp mine.gx "$TINY"
    ask replay --engine=cpu mine.gx log --run both --report both
    exits 2
    complains 'both both'
    [ ! -e both ]
    echo old >both
    ask replay --engine=cpu mine.gx log --run both --report ./both --force
    exits 2
    [ "$(cat both)" = old ]
    ask replay --engine=cpu mine.gx log --run /dev/null --report /dev/null --rate 1e6
    exits 0
    says '1000000 queries/s offered'
    echo old >old.run
    ask replay --engine=cpu mine.gx log --run old.run
    exits 5
    complains 'old.run exists'
    [ "$(cat old.run)" = old ]
    ask replay --engine=cpu mine.gx log --run old.run --force
    exits 0
    grep -q ' Q0 ' old.run
}

@test "with thresholds of pairs the answers are the same" {
    for k in 1 3; do
        ask replay -q --engine=cpu "$TINY" log -k $k --run=without --force
        exits 0
        ask replay --engine=cpu "$TINY" log -k $k --run=with --pair-thresholds=20 --verify --force --report=report.json
        exits 0
        complains "pairs of 20 terms, k $k: "
        cmp without with
        python3 -c '
import json
o = json.load(open("report.json"))["options"]
assert o["pair_thresholds"] == 20 and o["linger"] == 100, o'
    done
    ask bench query --engine=cpu --runs=1 "$TINY" log --op=or -k 2 --pair-thresholds=5 --format=json
    exits 0
    says '"pair_thresholds": 5'
    ask replay --engine=cpu "$TINY" log --pair-thresholds=5000
    exits 2
    complains 4096
}

@test "--filter holds for all queries of a replay" {
    printf '{"id":"y%d","text":"word","year":%d}\n' 1 2001 2 2002 3 2003 >years.jsonl
    "$GPUIDX" build -q years.jsonl -o years.gx --attr=year:int
    printf '1\tword\n2\tword word\n' >log
    ask replay --engine=cpu years.gx log --filter 'year:>=2002' --verify --run=run --report=report.json
    exits 0
    says 'Only 2 documents may be results'
    [ "$(cut -d' ' -f1,3 run | tr '\n' ' ')" = '1 y2 1 y3 2 y2 2 y3 ' ]
    python3 -c '
import json
o = json.load(open("report.json"))["filter"]
assert o == {"only": None, "not": None, "expression": "year:>=2002", "documents": 2}, o'
    ask replay --engine=cpu years.gx log --filter 'year:'
    exits 2
    complains 'filter, column 6: a value is expected'
}

@test "each query of a log may have a filter of its own" {
    printf '{"id":"y%d","text":"word","year":%d}\n' 1 2001 2 2002 3 2003 >years.jsonl
    "$GPUIDX" build -q years.jsonl -o years.gx --attr=year:int
    printf 'qid\tquery\tfilter\n1\tword\tyear:2001\n2\tword\t\n3\tword\tyear:>2001\n' >log
    printf '%s\n' '{"id":"1","query":"word","filter":"year:2001"}' '{"id":"2","query":"word"}' \
        '{"id":"3","query":"word","filter":"year:>2001"}' >log.jsonl
    for log in log log.jsonl; do
        for batch in 1 8; do
            ask replay --engine=cpu years.gx $log --verify --batch=$batch --run=run --report=report.json --force
            exits 0
            says '2 with a filter'
            [ "$(cut -d' ' -f1,3 run | tr '\n' ' ')" = '1 y1 2 y1 2 y2 2 y3 3 y2 3 y3 ' ]
        done
        python3 -c 'import json; o = json.load(open("report.json"))["log"]; assert o["filtered"] == 2, o'
    done
    printf 'y1\ny3\nnone\n' >list
    printf 'qid\tquery\tfilter\n1\tword\tid:@list AND year:>2001\n2\tword\tNOT id:@list\n' >listed
    ask replay --engine=cpu years.gx listed --run=run --force --verify --threads=2 --allow-id-files
    exits 0
    [ "$(cut -d ' ' -f 1,3 run | tr '\n' ' ')" = '1 y3 2 y2 ' ]
    [ "$(grep -c 'list: 1 of 3 ids are not in the index' <<<"$stderr")" = 1 ]
    printf 'qid\tquery\tfilter\n1\tword\tid:@nowhere\n2\tword\tid:y1\n' >unlisted
    ask replay --engine=cpu years.gx unlisted --allow-id-files
    exits 3
    complains 'unlisted:2: cannot open nowhere, a file of document ids'
    ask replay --engine=cpu years.gx unlisted --on-error=skip --run=run --force
    exits 0
    [ "$(cut -d ' ' -f 1,3 run)" = '2 y1' ]
    ask replay --engine=cpu years.gx log --filter 'year:<2003' --run=run --force
    exits 0
    [ "$(cut -d' ' -f1,3 run | tr '\n' ' ')" = '1 y1 2 y1 2 y2 3 y2 ' ]
    printf '1\tword\tyear:2001\n2\tword\tyaer:2001\n' >log
    ask replay --engine=cpu years.gx log --columns=id,text,filter
    exits 3
    complains 'log:2: filter, column 1: the index has no attribute '"'yaer'"'; did you mean year?'
    ask replay --engine=cpu years.gx log --columns=id,text,filter --on-error=skip --run=run --force
    exits 0
    [ "$(cut -d' ' -f1,3 run)" = '1 y1' ]
}

@test "filters of 1 MB, and 10,000 levels deep, are refused by line and column" {
    printf '{"id":"y%d","text":"word","year":%d}\n' 1 2001 2 2002 3 2003 >years.jsonl
    "$GPUIDX" build -q years.jsonl -o years.gx --attr=year:int
    printf 'id\ttext\tfilter\n1\tword\t' >head
    (cat head && python3 -c 'print(" OR ".join("year:%d" % i for i in range(70000)))') >wide
    (cat head && python3 -c 'print("(" * 10000 + "year:2001" + ")" * 10000)') >deep
    (cat head && python3 -c 'print("NOT " * 10000 + "year:2001")') >nots
    (cat head && python3 -c 'print("year:" + "9" * 1000000)') >long
    (cat head && python3 -c 'print(" OR ".join("year:%d" % i for i in range(1990, 9990)))') >fine
    [ "$(wc -c <wide)" -gt 900000 ]
    ask replay --engine=cpu years.gx wide
    exits 3
    complains 'wide:2: filter, column '
    complains 'more than 16384 conditions and operators'
    for log in deep nots; do
        ask replay --engine=cpu years.gx $log
        exits 3
        complains "$log:2: filter, column "
        complains 'nest deeper than 64 levels'
    done
    ask replay --engine=cpu years.gx long
    exits 3
    complains 'is outside the range of 64 bits'
    ask replay --engine=cpu years.gx fine --run=run --verify
    exits 0
    [ "$(wc -l <run)" = 3 ]
}

@test "a flag that belongs to query is said to" {
    ask replay --explain "$TINY" log
    exits 2
    complains '--explain: there is no such flag; gpuidx query has it'
}

@test "--only and --not filter a replay, its verification and its report" {
    printf '%s\n' d02 d05 d07 nowhere >list
    echo d05 >out
    for op in or and and-or; do
        ask replay --engine=cpu --op=$op "$TINY" log --only=list --not=out --verify \
            --run=run.$op --report=report.json --force
        exits 0
        says 'Only 2 documents may be results'
        complains '1 of 4 ids are not in the index'
        [ "$(cut -d' ' -f3 run.$op | grep -vcx -e d02 -e d07 || true)" = 0 ]
    done
    [ -s run.or ]
    python3 -c '
import json
o = json.load(open("report.json"))["filter"]
assert o == {"only": "list", "not": "out", "expression": None, "documents": 2}, o'
    ask replay -q --engine=cpu "$TINY" log --report=report.json --force
    python3 -c 'import json; assert json.load(open("report.json"))["filter"] is None'
    ask replay --engine=cpu "$TINY" log --only=list --run=list --force
    exits 2
    complains '--run: list is read by this replay'
    grep -q nowhere list
}

@test "with every posting scored each block is decoded once, and with skipping no block that is not told" {
    printf '%s\n' 'all even' 'search engine index' >log
    for prune in off on; do
        ask replay -q --engine=cpu "$TINY" log --prune=$prune --report r.json --force
        exits 0
        python3 - $prune <<'END'
import json, sys
work = json.load(open("r.json"))["work"]
assert work["blocks"] > 0
assert sys.argv[1] == "on" or work["blocks_decoded"] == work["blocks"], work
END
    done
}

@test "a log of disagreeing lines is refused and -f named; columns, headers and ids twice are told" {
    printf '1:all\n2:even\nodd\n' >log
    ask replay "$TINY" log
    exits 2
    complains 'log:3: this line has no number'
    complains '-f says'
    ask replay -f lines "$TINY" log
    exits 0
    printf 'qid\tquery\turl\n1\tall\tx\n1\teven\tx\n' >log
    ask replay "$TINY" log
    exits 0
    complains 'its first line names the columns'
    complains 'log: 1 query has an id that an earlier one has; --run would refuse this log'
    ask replay -q "$TINY" log --report r.json
    silent
    python3 -c 'import json; assert json.load(open("r.json"))["log"]["repeated_ids"] == 1'
    printf '1\tall\n2\teven\n' >once
    ask replay "$TINY" once
    [[ $stderr != *'earlier one has'* ]]
    ask replay "$TINY" log --run x.run
    exits 3
    complains 'log:3: an earlier query has the same id'
    [ ! -e x.run ]
    printf 'Query\tUrl\tCount\nskipping\tx\t3\n' >web
    ask replay "$TINY" web
    exits 2
    complains 'web:1: this line names a column of texts, but none of ids'
    complains '--columns'
    ask replay "$TINY" web --columns=text,id --run -
    exits 0
    says 'x Q0 '
    complains '(1 query in '
    complains 'documents, '
    printf '1\tall\tx\n' >log
    ask replay "$TINY" log
    complains 'has more columns than are read; --columns'
    ask replay --columns=text,-,id "$TINY" log --run -
    exits 0
    [ -z "$output" ] || says 'x Q0'
    ask replay --topic-fields=desc "$TINY" log
    complains '--topic-fields means nothing to a log of the form tsv'
    ask replay --run-tag= "$TINY" log
    exits 2
    complains 'neither empty nor has white space'
}

@test "the report for programs says where, when, on what and with which parameters" {
    ask replay -q --engine=cpu "$TINY" log --scorer=bm25:lucene --report facts.json
    exits 0
    [ -z "$output" ] # -q: none for people
    "$GPUIDX" info --json "$TINY" >info.json
    python3 - <<'END'
import json, re
o, info = json.load(open("facts.json")), json.load(open("info.json"))
assert o["index"]["uuid"] == info["uuid"]
assert o["index"]["codings"] and o["index"]["codings"][0]["docids"] == info["codings"][0]["docids"]
assert (o["options"]["k1"], o["options"]["b"]) == (1.2, 0.75), o["options"]
assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", o["date"])
assert o["host"]["name"] and o["host"]["processors"] >= 1 and o["host"]["cpu"]
END
}

@test "a replay orders results by attributes as query does" {
    for i in 1 2 3 4 5 6 7 8 9; do
        printf '{"id":"p%d","text":"shop word%d","price":%d}\n' $i $((i % 3)) $((i * 7 % 5))
    done >shop.jsonl
    "$GPUIDX" build -q -o shop.gx shop.jsonl --attr price:int
    printf 'a\tshop\nb\tword1\nc\tnowhere\nd\tword1 word2\n' >log
    for flags in '--sort=price' '--sort=price:desc -k 2' '--sort=price --op=and-or -k 3'; do
        "$GPUIDX" query -q --engine=cpu -f trec $flags shop.gx <log >want
        "$GPUIDX" replay -q --engine=cpu $flags --verify --threads=2 --run=got --force shop.gx log
        cmp got want
    done
    "$GPUIDX" replay -q --engine=cpu --sort=prise shop.gx log 2>err && false
    grep -q "did you mean price" err
}

@test "facets, sums and priors are replayed as query answers them" {
    for i in 1 2 3 4 5 6; do
        printf '{"id":"p%d","text":"shop%s","price":%d,"brand":"b%d"}\n' $i "$(printf ' w%.0s' $(seq $((i % 3))))" \
            $((i * 3 % 7)) $((i % 2))
    done >shop.jsonl
    "$GPUIDX" build -q -o shop.gx shop.jsonl --attr price:int --attr brand:keyword --store=text
    printf '%s\n' shop w 'shop w' zzz >log
    ask replay --engine=cpu shop.gx log --facet=brand:avg=price --sums=price --report=report.json --run=run
    exits 0
    says 'Counted beside each answer: brand:avg=price; price'
    python3 -c '
import json
o = json.load(open("report.json"))
assert o["matches"] == o["results"] == 18 and o["stage_seconds"]["count"] > 0, o'
    "$GPUIDX" replay -q --engine=cpu shop.gx log --run=plain >out
    cmp run plain
    for threads in 1 2; do
        "$GPUIDX" replay -q --engine=cpu shop.gx log --prior=price:w=0.5 -k 4 --threads=$threads --batch=2 \
            --run=prior --force >out
        while read -r text; do "$GPUIDX" query -q --engine=cpu shop.gx "$text" --prior=price:w=0.5 -k 4 -f trec; done \
            <log | cut -d' ' -f3-5 >want
        diff <(cut -d' ' -f3-5 prior) want
    done
    for bad in "--facet=brnd|did you mean brand" "--sums=brand|sums" "--prior=brand|prior" "--prior=prize|price" \
        "--prior=price --sort=price|leave out --sort" "--prior=price --verify|leave out --verify" \
        "--facet=brand --rm3|leave out --rm3" "--facet=brand:exclude-own --filter=price:1|exclude-own"; do
        ask replay -q --engine=cpu shop.gx log ${bad%|*}
        exits 2
        complains "${bad#*|}"
    done
}
