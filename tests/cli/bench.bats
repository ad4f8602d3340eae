# The benchmarks: what they print, not how fast the machine is.
load cli

setup_file() {
    build_tiny
    printf 'merge find\ncompression\nskip lists\n' >"$BATS_FILE_TMPDIR/log"
    export LOG=$BATS_FILE_TMPDIR/log
}

@test "the list of codecs has every codec once, and BP32 without an id" {
    ask bench codecs --list --format=csv
    exits 0
    [ "$(cut -d, -f1 <<<"$output" | sort | uniq -d | wc -l)" = 0 ]
    says 'name,title,id,block_len,slack_bits,random_access,cpu,gpu_this_build,arrangement,length_encoding,names,source'
    says 'gpubp128,GPU-BP128,2,128,512,yes,docids,'
    says 'ef128,Elias-Fano,19,128,512,yes,docids+find,'
    says 'rice,Rice,32,128,512,no,yes,'
    says 'bp32,BP32,,,,no,yes,no,'
    [[ $output == *'varint-su,varint-SU,24,128,512,no,yes,'*',split,unary,"v-byte, vbyte, VB, varint, VInt",'* ]]
    python3 -c 'import csv, sys
rows = list(csv.DictReader(sys.stdin))
bytes = {r["name"]: r["arrangement"] + " " + r["length_encoding"] for r in rows if r["names"]}
assert sorted(set(bytes.values())) == ["group binary", "group unary", "packed binary", "packed unary", "split unary"]
assert {n for n in bytes} == {r["name"] for r in rows if ("varint" in r["name"] or "vbyte" in r["name"])
                              and not r["name"].endswith("-paper")}, bytes
assert all(r["arrangement"] == "" for r in rows if r["name"] not in bytes)' <<<"$output"
}

@test "the list of codecs is JSON too, without an id or a block length where there is none" {
    ask bench codecs --list --format=json
    exits 0
    python3 -c 'import json, sys
codecs = {c["name"]: c for c in json.load(sys.stdin)["codecs"]}
assert codecs["gpubp128"]["id"] == 2 and codecs["gpubp128"]["block_len"] == 128, codecs
assert codecs["gpubp128"]["random_access"] is True, codecs
assert codecs["gpubp128"]["slack_bits"] == 512 and codecs["gpubp128"]["cpu"] == "docids", codecs
assert codecs["bp32"]["slack_bits"] is None and codecs["bp32"]["arrangement"] is None, codecs
assert codecs["varint-pb"]["arrangement"] == "packed" and codecs["varint-pb"]["length_encoding"] == "binary", codecs
assert "varint30" in codecs["varint-pb"]["names"], codecs
assert codecs["bp32"]["id"] is None and codecs["bp32"]["block_len"] is None, codecs
assert codecs["bp32"]["gpu_this_build"] is False, codecs' <<<"$output"
    ask bench codecs --list
    [[ $(head -1 <<<"$output") == *'GPU (this build)'* ]]
}

@test "a codec named twice is measured once, and none at all is refused" {
    ask bench codecs --engine=cpu --table=2 --index="$TINY" --codecs=rice,gpubp128,rice --format=csv
    exits 0
    [ "$(cut -d, -f1 <<<"$output")" = $'method\nRice\nGPU-BP128' ]
    ask bench codecs --codecs=
    exits 2
    complains 'none is named'
}

@test "tables begin with the machine, and CSV does not" {
    ask bench codecs --engine=cpu --table=2 --index="$TINY" --codecs=rice --seed=7
    exits 0
    [[ $(head -1 <<<"$output") == "gpuidx "*"; "*"; seed 7" ]]
}

@test "table 2 has the bits that GPU-VByte writes, table 1 those that the paper's encoder does" {
    ask bench codecs --engine=cpu --table=2 --index="$TINY" --codecs=gpuvbyte128 --format=json
    exits 0
    bits=$(python3 -c 'import json, sys
r = json.load(sys.stdin)["rows"]
assert r[0]["bits"] != r[0]["paper_bits"], r
print("%.2f,%.2f" % (r[0]["bits"], r[1]["bits"]))' <<<"$output")
    ask bench codecs --engine=cpu --table=2 --index="$TINY" --codecs=gpuvbyte128 --format=csv
    [ "$(tail -1 <<<"$output" | cut -d, -f2,3)" = "$bits" ]
    ask bench codecs --engine=cpu --table=1 --codecs=gpuvbyte128 --format=csv
    exits 0
    [ "$(tail -1 <<<"$output")" = GPU-VByte128,18.16,10.50,16.68,10.51 ]
}

@test "table 3 without a GPU has dashes, and says why" {
    ask bench codecs -q --engine=cpu --table=3 --from=11 --to=12 --codecs=bp32,gpubp128
    exits 0
    complains 'no GPU is measured'
    grep -Eq '^BP32 +GPU-BP128 +- +-$' <<<"$output"
    ask bench codecs --engine=cpu --table=3 --from=11 --to=12 --codecs=bp32,gpubp128 --format=csv
    exits 0
    [ "$output" = $'against,method,2^11,2^12\nBP32,GPU-BP128,,' ]
}

@test "table 4 has no factor without the codec that it is against" {
    ask bench codecs --engine=cpu --table=4 --index="$TINY" --queries="$LOG" --codecs=gpubp128
    exits 0
    grep -Eq '^GPU-BP128 +CPU +[0-9]+ +- +[0-9]+ +- ' <<<"$output"
    ask bench codecs --engine=cpu --table=4 --index="$TINY" --queries="$LOG" --codecs=gpubp128 --format=csv
    exits 0
    grep -Eq '^GPU-BP128,cpu,[0-9.]+,,[0-9.]+,,[0-9.]+,,$' <<<"$output"
}

@test "table 2 has the sizes of an index's lists, docids and term frequencies apart" {
    ask bench codecs --table=2 --index="$TINY" --codecs=gpubp128,raw,bp32 --format=csv
    exits 0
    [ "$(head -1 <<<"$output")" = method,docids,freqs,docids_with_heads ]
    [ "$(wc -l <<<"$output")" = 4 ]
    grep -Eq '^GPU-BP128,[0-9.]+,[0-9.]+,[0-9.]+$' <<<"$output"
    grep -Eq '^BP32,[0-9.]+,[0-9.]+,$' <<<"$output"
}

@test "table 4 has the speeds of a log's lists, and says whose they are" {
    ask bench codecs --engine=cpu --table=4 --index="$TINY" --queries="$LOG" --codecs=bp32,varintgb,gpubp128,gpuvbyte128
    exits 0
    says "queries of $LOG"
    says '3 queries'
    grep -Eq '^GPU-VByte128 +CPU +[0-9]+ \(x' <<<"$output"
    ask bench codecs --engine=cpu --table=4 --index="$TINY" --queries="$LOG" --codecs=bp32,gpubp128 --format=csv
    exits 0
    [ "$(cut -d, -f1,2 <<<"$output" | tail -2)" = $'BP32,cpu\nGPU-BP128,cpu' ]
}

@test "JSON has a row for docids and one for term frequencies" {
    ask bench codecs --engine=cpu --index="$TINY" --queries="$LOG" --sample=2 --codecs=gpubp128 --format=json
    exits 0
    python3 -c 'import json, sys
r = json.load(sys.stdin)
assert r["queries"] == 2 and [x["lists"] for x in r["rows"]] == ["docids", "tfs"], r
assert r["rows"][0]["docids"] > 0 and r["rows"][1]["docids"] is None and r["rows"][1]["docid_bits"] is None, r
assert r["read_gbs"] is None and r["copy_gbs"] is None and r["mixed_gbs"] is None, r
assert r["gpuidx"] and r["cpu"] and r["simd"] in ("portable", "AVX2", "AVX-512") and r["seed"] == 1, r' <<<"$output"
}

@test "GX_CPU says which decoders are measured, and what this processor lacks is refused, as a query does" {
    GX_CPU=portable ask bench codecs --table=2 --index="$TINY" --codecs=gpubp128 --format=json
    exits 0
    python3 -c 'import json, sys
assert json.load(sys.stdin)["simd"] == "portable"' <<<"$output"
    GX_CPU=sse ask bench codecs --engine=cpu --index="$TINY" --codecs=gpubp128
    exits 2
    complains "the environment's GX_CPU, 'sse', names no instruction set of this processor"
    GX_CPU=sse ask query --engine=cpu "$TINY" compression
    exits 2
    complains "the environment's GX_CPU, 'sse', names no instruction set of this processor"
}

# Do the scripts' titles say of what they are, on which machine, by which version, when? titled OF SCRIPT...
titled() {
    local of=$1 script cpu
    cpu=$(sed -n 's/^model name[[:blank:]]*: *//p' /proc/cpuinfo | head -n 1)
    shift
    for script in "$@"; do
        grep -F -e "\\n$of; ${cpu:-unknown CPU}; " "$script" |
            grep -Eq '^set title "[^"]+; gpuidx [0-9.]+, [0-9]{4}-[0-9]{2}-[0-9]{2}" noenhanced$' ||
            { echo "$script: $(grep 'set title' "$script")"; return 1; }
    done
}

@test "a plot's data are there whether gnuplot is or not" {
    ask bench codecs --engine=cpu --index="$TINY" --queries="$LOG" --codecs=gpubp128,bp32 --plot=plots
    exits 0
    grep -q '^\$cpu << END$' plots/size-docids.gp
    grep -q ' GPU-BP128$' plots/size-tfs.gp
    titled "tiny.gx, $(basename "$LOG")" plots/*.gp
}

@test "a plot of one codec or one length is drawn like any other, without a word" {
    command -v gnuplot || skip 'no gnuplot'
    for arguments in '--codecs=raw --from=11 --to=11' '--codecs=raw,rice --from=11 --to=11' \
        '--codecs=rice --from=11 --to=12 --step=1' \
        "--codecs=raw --index=$TINY --queries=$LOG"; do
        rm -rf plots
        # shellcheck disable=SC2086
        ask bench codecs -q --engine=cpu $arguments --plot=plots
        exits 0
        silent
        for script in plots/*.gp; do
            [ -s "${script%.gp}.png" ]
            grep -q '</svg>' "${script%.gp}.svg"
        done
    done
}

@test "a missing gnuplot is told once, and images that it leaves empty are removed" {
    PATH=$PWD/none "$GPUIDX" bench codecs -q --engine=cpu --from=11 --to=11 --codecs=raw --plot=plots >out 2>err
    [ "$(wc -l <err)" = 1 ]
    grep -q 'there is no gnuplot' err
    [ "$(ls plots)" = $'figure3-clustered.gp\nfigure3-uniform.gp\nsize-clustered.gp\nsize-uniform.gp' ]
    mkdir bin
    printf '#!/bin/sh\nset -- "${1%%.gp}"\n: >$1.png\necho >$1.svg\nexit 1\n' >bin/gnuplot
    chmod +x bin/gnuplot
    PATH=$PWD/bin:$PATH ask bench codecs --engine=cpu --from=11 --to=11 --model=uniform --codecs=raw --plot=plots \
        --force
    exits 0
    complains 'gnuplot did not draw plots/size-uniform.gp'
    [ -s plots/size-uniform.svg ] && [ ! -e plots/size-uniform.png ]
}

@test "a folder of plots that cannot be written is refused before anything is measured" {
    : >file
    for folder in file file/in /proc; do
        ask bench codecs --engine=cpu --from=11 --to=11 --codecs=raw --plot=$folder
        exits 5
        [ -z "$output" ]
    done
}

@test "tables of an index want one, and the others none" {
    ask bench codecs --table=2
    exits 2
    complains '--index'
    ask bench codecs --table=1 --index="$TINY"
    exits 2
    ask bench codecs --queries="$LOG"
    exits 2
    ask bench codecs --table=4 --index="$TINY" --queries=missing
    exits 5
    printf 'zzzz\n' >none
    ask bench codecs --table=4 --index="$TINY" --queries=none
    exits 2
    complains 'no list'
    complains "drawn from none is in $TINY"
    ask bench codecs --index="$TINY"
    exits 2
    complains "$TINY has none of 1024 postings or more"
    printf '\n\n' >blank
    ask bench codecs --index="$TINY" --queries=blank
    exits 3
    complains 'blank has no query'
}

@test "figures of an index's lists count sizes by form, and speeds by length" {
    ask bench codecs --figure=recursion --index="$TINY" --format=csv
    exits 0
    [ "$(head -1 <<<"$output")" = form,bits ]
    [ "$(grep -c 'whole lists, [0-4] level' <<<"$output")" = 5 ]
    ask bench codecs --figure=elias-fano --index="$TINY" --queries="$LOG" --format=json
    exits 0
    python3 -c 'import json, sys
r = json.load(sys.stdin)
b = {x["form"]: x["bits"] for x in r["rows"]}
assert r["figure"] == "elias-fano" and r["queries"] == 3 and r["postings"] > 0, r
assert abs(b["blocks of an index"] + b["where blocks end"] + b["heads of blocks"] - b["blocks with both"]) < 1e-9, b' \
        <<<"$output"
    printf '%s\n' a{1..200} | sed 's/.*/{"id": "&", "text": "word"}/' >many.jsonl
    ask build -q many.jsonl -o many.gx
    exits 0
    ask bench codecs --figure=lengths --index=many.gx --engine=cpu --codecs=pfordelta,rice --format=csv
    exits 0
    [ "$(cut -d, -f1,3,4 <<<"$output")" = $'method,log2n,n\nPForDelta,8,200\nRice,8,200' ]
    ask bench codecs --figure=lengths --index="$TINY" --engine=cpu
    exits 2
    complains 'none of more than 64 postings'
    for figure in recursion lengths elias-fano; do
        ask bench codecs --figure=$figure
        exits 2
        complains '--index'
        ask bench codecs --figure=$figure --index="$TINY" --plot=plots
        exits 2
        complains '--plot'
    done
    ask bench codecs --figure=recursion --index="$TINY" --codecs=rice
    exits 2
    complains '--figure=recursion and --codecs'
    ask bench codecs --figure=4
    exits 2
}

@test "a short list's length is a number, not 0M" {
    ask bench codecs --engine=cpu --index="$TINY" --queries="$LOG" --codecs=raw,rice
    exits 0
    [ "$(grep -Ec '^(raw|Rice) +(docids|tfs) +[1-9][0-9]* +[0-9]' <<<"$output")" = 4 ]
}

@test "flags that would count for nothing are refused, both named" {
    while read -r one other; do
        ask bench codecs --engine=cpu --codecs=raw "$one" "$other"
        exits 2
        complains "${one%%=[!13]*} and ${other%%=*}"
    done <<'END'
--table=1 --from=16
--table=1 --to=16
--table=1 --step=9
--table=1 --model=uniform
--table=1 --plot=plots
--table=3 --model=uniform
--table=3 --step=1
--index=index.gx --from=16
--index=index.gx --model=both
END
    ask bench codecs --index="$TINY" --table=2 --plot=plots
    exits 2
    complains '--table=2 and --plot'
    [ ! -e plots ]
    for flag in --table=1 --figure=3 --index=index.gx --queries=log --from=16 --seed=1 --engine=cpu --plot=plots; do
        ask bench codecs --list $flag
        exits 2
        complains "--list and ${flag%%=*}"
    done
    ask bench codecs --index="$TINY" --sample=2
    exits 2
    complains '--queries'
}

@test "flags that mean nothing to a figure, a simulation or a log of decisions are refused with the reason" {
    while read -r with other command; do
        ask bench $command
        exits 2
        complains "$with and $other"
        complains ': '
    done <<'END'
--figure=recursion --recursion query --figure=recursion --recursion=2
--figure=recursion --op query --figure=recursion --op=and
--figure=ratio --top query --figure=ratio -k 10
--figure=ratio --limit query --figure=ratio --limit=10
--figure=ratio --resident query --figure=ratio --resident=10%
--figure=recall --recursion query --figure=recall index.gx log --recursion=1
--documents --load query --documents=1000 --load=read
--simulate --within schedule --simulate --within=5
--simulate --engines schedule --simulate --engines=cpu
--simulate --seconds schedule --simulate --seconds=1
--simulate --resident schedule --simulate --resident=10%
--simulate --op schedule --simulate --op=or
--repeat --seed schedule --repeat=file --seed=1
INDEX --deadline schedule index.gx log --deadline=3
INDEX --costs schedule index.gx log --costs=file
--within --per-decade schedule index.gx log --within=5 --per-decade=3
hybrid --submitters schedule index.gx log --engines=cpu --submitters=2
END
    for flags in --op=or --algorithm=auto,taat; do
        ask bench query index.gx log --recursion=2 $flags
        exits 2
        complains 'Parallel Merge Find'
    done
    ask bench schedule index.gx log --queries=200
    exits 2
    complains '--within'
}

@test "Figure 3 is of the model and the lengths that are asked for, else of Uniform and every length" {
    ask bench codecs --engine=cpu --figure=3 --from=11 --to=13 --codecs=raw --format=csv
    exits 0
    [ "$(cut -d, -f2,3 <<<"$output")" = $'model,log2n\nuniform,11\nuniform,12\nuniform,13' ]
    ask bench codecs --engine=cpu --figure=3 --from=11 --to=13 --step=2 --model=clustered --codecs=raw --format=csv
    exits 0
    [ "$(cut -d, -f2,3 <<<"$output")" = $'model,log2n\nclustered,11\nclustered,13' ]
}

@test "bench query compares every algorithm's answers and counts what it reads" {
    ask bench query --engine=cpu --runs=1 -k 3 "$TINY" "$LOG" --format=json
    exits 0
    python3 -c 'import json, sys
r = json.load(sys.stdin)
rows = r["rows"]
assert r["queries"] == 3 and len(rows) == 9, r
all_of = {(o, a) for o in ("or", "and", "and-or") for a in ("auto", "pmf", "taat")}
assert {(x["op"], x["algorithm"]) for x in rows} == all_of, rows
for x in rows:
    assert x["different"] == 0 and x["queries_per_second"] > 0 and x["latency_us"]["p50"] <= x["latency_us"]["p95"], x
    assert x["latency_us"]["samples"] == 3 and x["latency_us"]["p99"] is None and x["latency_us"]["p99.9"] is None, x
    if x["op"] == "or" and x["algorithm"] != "auto":
        assert x["blocks_decoded"] == x["blocks"] > 0 and x["bytes_read"] > 0, x
    assert x["fixed_us"] >= 0 and x["ps_a_posting_touched"] >= 0, x
    assert x["postings_touched"] >= x["lookups"] + x["blocks_decoded"], x
    if x["op"] == "and" and x["algorithm"] == "pmf":
        assert x["step_us"]["intersect"] >= 0 and x["step_us"]["initialize"] == 0, x' <<<"$output"
}

@test "bench query prints rows and the tables of the paper" {
    ask bench query --engine=cpu --runs=1 --op=and,or -k 1,2 --algorithm=auto,taat "$TINY" "$LOG" --format=csv
    exits 0
    [ "$(cut -d, -f1-4 <<<"$output" | tail -n +2 | sort | uniq | wc -l)" = 8 ]
    ask bench query --engine=cpu --runs=1 "$TINY" "$LOG"
    exits 0
    says 'cpu  and-or  1000 taat'
    ask bench query --engine=cpu --runs=1 --table=2 "$TINY" "$LOG" --format=csv
    exits 0
    [ "$(cut -d, -f1-3 <<<"$output")" = $'engine,algorithm,batch\ncpu,daat,1\ncpu,pmf,1\ncpu,auto,1' ]
    ask bench query --engine=cpu --runs=1 --table=3 "$TINY" "$LOG" --format=csv
    exits 0
    [ "$(cut -d, -f1-4 <<<"$output" | tr '\n' ' ')" = \
        'op,engine,algorithm,batch and,cpu,daat,1 and,cpu,pmf,1 or,cpu,daat,1 or,cpu,pmf,1 ' ]
    awk -F, 'NF != 9 { exit 1 } NR > 1 { s = $5 + $6 + $7 + $8 + $9; n += s > 99.9 && s < 100.1 } END { exit n != 4 }' \
        <<<"$output"
    ask bench query --engine=cpu --runs=1 --table=3 "$TINY" "$LOG"
    exits 0
    [[ $(head -1 <<<"$output") == "gpuidx "*"; seed 1" ]]
    grep -Eq '^and +cpu +pmf +1( +[0-9.]+){5}$' <<<"$output"
    grep -Eq '^or +cpu +pmf +1( +[0-9.]+){5}$' <<<"$output"
}

@test "the tables of bench query are in its JSON" {
    ask bench query --engine=cpu --runs=1 --table=2 "$TINY" "$LOG" --format=json
    exits 0
    python3 -c 'import json, sys
r = json.load(sys.stdin)
assert [x["algorithm"] for x in r["table2"]] == ["daat", "pmf", "auto"] and "table3" not in r, r
assert all(x[c] >= 0 for x in r["table2"] for c in ("and_ms", "or_ms", "and_or_ms")), r
assert r["gpuidx"] and r["cpu"] and r["simd"] and r["seed"] == 1, r' <<<"$output"
    ask bench query --engine=cpu --runs=1 --table=3 "$TINY" "$LOG" --format=json
    exits 0
    python3 -c 'import json, sys
r = json.load(sys.stdin)
steps = ("initialization", "decompression", "intersection", "scoring", "top_k")
assert [x["op"] for x in r["table3"]] == ["and", "and", "or", "or"], r
assert all(abs(sum(x[s] for s in steps) - 100) < 1e-6 for x in r["table3"]), r' <<<"$output"
}

@test "a figure of bench query is JSON too" {
    ask bench query --engine=cpu --figure=ratio --format=json
    exits 0
    python3 -c 'import json, sys
r = json.load(sys.stdin)
assert r["figure"] == "ratio" and r["seed"] == 1 and r["cpu"], r
assert [x["other_length"] for x in r["rows"]] == [200000 << i for i in range(7)], r
assert all(len(x["levels_ns"]) > 1 and min(x["levels_ns"]) >= 0 for x in r["rows"]), r
assert all(x["ours_ns"] >= 0 for x in r["rows"]), r' <<<"$output"
}

@test "operators and numbers named twice are measured once" {
    ask bench query --engine=cpu --runs=1 --op=or,or -k 2,2 --algorithm=auto,auto "$TINY" "$LOG" --format=csv
    exits 0
    [ "$(wc -l <<<"$output")" = 2 ]
    ask bench query --op= "$TINY" "$LOG"
    exits 2
    complains 'none is named'
}

@test "high percentiles are told from 100 and from 1,000 latencies on" {
    columns='engine,op,k,algorithm,recursion,batch,queries_per_second,mean_us,p50_us,p90_us,p95_us,p99_us,p99.9_us,'
    for runs in 33 34 333 334; do
        ask bench query --engine=cpu --runs=$runs --op=or -k 2 --algorithm=auto "$TINY" "$LOG" --format=csv
        exits 0
        [[ $(head -1 <<<"$output") == "$columns"* ]]
        [ "$(tail -1 <<<"$output" | awk -F, '{ print ($11 != "") ($12 != "") ($13 != "") }')" = \
            "1$((3 * runs >= 100))$((3 * runs >= 1000))" ]
    done
    ask bench query --engine=cpu --runs=1 --op=or -k 2 --algorithm=auto "$TINY" "$LOG"
    grep -Eq '^cpu +or +2 auto +1 +[0-9]+( +[0-9.]+){3} +- +-  equal$' <<<"$output"
}

@test "bench query makes a collection of its own, and plots" {
    ask bench query --engine=cpu --runs=1 --documents=2000 --limit=20 --op=or -k 5 --algorithm=auto,pmf --plot=drawn \
        --format=csv
    exits 0
    [ "$(wc -l <<<"$output")" = 3 ]
    for plot in batch rate postings; do
        grep -q '^\$s0_0 << END$' drawn/$plot.gp
    done
    [ "$(grep -c '^[0-9]' drawn/postings.gp)" -gt 10 ]
    titled 'generated collection of 2000 documents, seed 1' drawn/*.gp
}

@test "bench query draws recall against speed, of words and of vectors" {
    ask bench query --engine=cpu --runs=1 --figure=recall "$TINY" "$LOG" -k 2 --format=csv
    exits 0
    [ "$(head -1 <<<"$output" | cut -d, -f1-5)" = engine,k,batch,approximate,recall ]
    [[ $(sed -n 2p <<<"$output") == cpu,2,1,0,1.00000,* ]]
    "$GPUIDX" generate -q --shape=splade --documents=3000 --queries=40 --format=vectors -o s
    "$GPUIDX" build -qf vectors s.jsonl -o s.gx
    ask bench query --engine=cpu --runs=1 --figure=recall s.gx s.queries.jsonl -k 10 --plot=recalls --format=json
    exits 0
    python3 -c 'import json, sys
r = json.load(sys.stdin)
assert r["figure"] == "recall" and r["k"] == 10 and r["queries"] == 40, r
rows = r["rows"]
assert rows[0]["approximate"] == 0 and abs(rows[1]["approximate"] - 0.05) < 1e-6, rows
assert rows[0]["recall"] == 1 and rows[-1]["recall"] < rows[1]["recall"] <= 1, rows
assert all(x["queries_per_second"] > 0 for x in rows), rows' <<<"$output"
    grep -q '^\$cpu << END$' recalls/recall.gp
    titled 's.gx, s.queries.jsonl' recalls/recall.gp
    ask bench query --engine=cpu --figure=ratio --plot=ratios
    titled 'generated lists' ratios/ratio.gp
    ask bench query --figure=recall s.gx s.queries.jsonl --op=and
    exits 2
    complains '--op'
    ask bench query --figure=recall
    exits 2
}

@test "energy that no GPU tells is said not to be measured, and is null in JSON" {
    ask bench query "$TINY" "$LOG" --engine=cpu --runs=1 --op=or -k 10 --algorithm=daat,pmf --energy --format=json
    exits 0
    complains 'no energy is measured'
    python3 -c 'import json, sys
rows = json.load(sys.stdin)["rows"]
assert [r["algorithm"] for r in rows] == ["daat", "pmf"] and all(r["joules"] is None for r in rows), rows' <<<"$output"
    ask bench query --documents=2000 --limit=4 --engine=cpu --runs=1 --codec=pfordelta --table=2 --format=csv
    exits 0
    [ "$(cut -d, -f1,2 <<<"$output")" = $'engine,algorithm\ncpu,daat\ncpu,pmf\ncpu,auto' ]
    ask bench query "$TINY" "$LOG" --codec=rice
    exits 2
    complains '--documents'
    ask bench query --documents=2000 --codec=zip
    exits 2
    complains 'zip'
}

@test "a generated collection has tables of codecs too" {
    ask bench codecs --table=2 --documents=2000 --codecs=bp32,gpubp128 --format=csv
    exits 0
    [ "$(wc -l <<<"$output")" = 3 ]
    ask bench codecs --table=4 --documents=2000 --sample=3 --codecs=bp32,gpubp128 --engine=cpu
    exits 0
    says 'generated collection'
    for flags in "--table=1 --documents=2000" "--documents=2000 --index=$TINY" "--documents=2000 --from=16" \
        "--table=2 --documents=2000 --sample=3" "--documents=2000 --queries=$LOG"; do
        ask bench codecs $flags
        exits 2
    done
}

@test "bench query says what it lacks" {
    ask bench query "$TINY"
    exits 2
    complains 'query log'
    ask bench query "$TINY" "$LOG" --op=nor
    exits 2
    complains 'nor'
    ask bench query "$TINY" "$LOG" -k 0
    exits 2
    ask bench query "$TINY" "$LOG" --figure=ratio
    exits 2
    ask bench query "$TINY" "$LOG" --table=2 --op=or
    exits 2
    complains '--op'
    ask bench query --table=2 --figure=ratio
    exits 2
    : >file
    ask bench query --engine=cpu "$TINY" "$LOG" --plot=file
    exits 5
    [ -z "$output" ]
    ask bench query --engine=cpu --figure=ratio --plot=file/in
    exits 5
    [ -z "$output" ]
    ask bench query "$TINY" missing
    exits 5
}

@test "figure 4 has the storage that the paper's metadata take, and needs no GPU" {
    ask bench bitmaps -q --figure=4 --rows=200000 --data=linkage,bpa --format=json
    exits 0
    python3 -c 'import json, sys
r = json.load(sys.stdin)
data, storage = ({x["row"]: x["values"] for x in t["rows"]} for t in r["tables"])
assert list(data) == ["BPA", "linkage"] and r["gpu"] is None and r["seed"] == 1, r
for name, v in data.items():
    words = v["attributes"] and v["columns"] * -(-200000 // 63)
    assert v["rows"] == 200000 and v["words"] == words and abs(v["words/atom"] - words / v["atoms"]) < 1e-6, v
    s = storage[name]
    assert s["stage 2 in 32 bits"] == 1.5 and s["stage 2 in 64 bits"] == 2, s
    assert abs(s["stage 4 in 32 bits"] - 1 - v["words/atom"] / 2) < 1e-6 and s["ours"] < 1.2, s' <<<"$output"
}

@test "bitmaps are ORed on the CPU in every way, with the same answers" {
    ask bench bitmaps -q --engine=cpu --rows=100000 --data=kddcup,range --columns=5 --runs=2 -j 2
    exits 0
    says 'the query is the OR of 5 neighbouring columns'
    for way in 'WAH, two by two' 'WAH into chunks' decompressed containers; do
        grep -Eq "^kddcup: $way +[0-9.]+ +[0-9.]+" <<<"$output"
        grep -Eq "^one attribute: $way +[0-9.]+ +[0-9.]+" <<<"$output"
    done
    ask bench bitmaps -q --engine=cpu --rows=100000 --data=kddcup --format=csv
    exits 0
    [ "$(head -1 <<<"$output")" = table,title,row,column,value ]
    says 'data,"Data sets; the query is the OR of 64 neighbouring columns","kddcup","rows",100000'
}

@test "bitmaps that there are not are refused, and so is a GPU's figure without one" {
    ask bench bitmaps --data=bpa,stocks
    exits 2
    complains 'there is no stocks'
    ask bench bitmaps --data=
    exits 2
    ask bench bitmaps --figure=3
    exits 2
    ask bench bitmaps --figure=8 --engine=cpu --rows=1000 --data=linkage
    exits 7
    complains '--figure=8 is of a GPU'
}

@test "the plot of figure 4 is there whether gnuplot is or not" {
    ask bench bitmaps -q --figure=4 --rows=20000 --data=linkage --plot=plots
    exits 0
    grep -q '^"linkage" 1.5 2 ' plots/figure4.gp
}
