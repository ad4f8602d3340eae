# `gpuidx sweep`: its values against replay and eval, and what bad input gets.
load cli

setup_file() { build_tiny; }

setup() {
    cd "$BATS_TEST_TMPDIR"
    printf '%s\t%s\n' 1 'skipping blocks' 2 'compression of lists' 3 'identical twins' 4 'not judged' >log.tsv
    printf '%s\n' '1 0 d02 1' '1 0 d01 2' '2 0 d04 1' '2 0 d16 1' '3 0 d06 1' '9 0 d01 1' >qrels
}

@test "each value is that of replay and eval" {
    ask sweep --engine=cpu "$TINY" log.tsv qrels --scorer=bm25,bm25:atire --k1=0.5,1.2 --b=0,0.75 \
        -m ndcg@10,map,num_ret --json -j 2
    exits 0
    complains '1 of 4 judged queries are not in log.tsv'
    complains 'choose on training queries'
    cp .stdout sweep.json
    for scorer in bm25 bm25:atire; do
        for k1 in 0.5 1.2; do
            for b in 0 0.75; do
                ask replay -q --engine=cpu "$TINY" log.tsv --scorer=$scorer --k1=$k1 --b=$b -k 1000 --run=run --force
                exits 0
                ask eval -q --quiet --json -m ndcg@10,map,num_ret qrels run
                exits 0
                python3 - $scorer $k1 $b <<'END'
import json, sys
scorer, k1, b = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
o, e = json.load(open("sweep.json")), json.load(open(".stdout"))
found = [s for s in o["settings"] if (s["scorer"], s["k1"], s["b"]) == (scorer, k1, b)]
assert len(found) == 1 and o["schema"] == 1 and len(o["settings"]) == 8
for name, value in e["all"].items():
    assert abs(found[0]["values"][name] - value) < 1e-8, (name, value, found)
assert o["best"]["values"]["ndcg_cut_10"] == max(s["values"]["ndcg_cut_10"] for s in o["settings"])
assert o["queries_searched"] == 3 and o["queries_missing_from_log"] == 1
END
            done
        done
    done
}

@test "a table, the best setting, and a warning that it was tuned on these queries" {
    ask sweep --engine=cpu "$TINY" log.tsv qrels --k1=0.5,1.2 --scorer=bm25,impact -m map --complete
    exits 0
    [ "$(grep -c '^bm25 ' .stdout)" -ge 2 ]
    [ "$(grep -c '^impact  *-  *-  ' .stdout)" -ge 1 ]
    says 'best by map, of 3 settings over 4 queries:'
    complains 'choose on training queries'
    ask sweep -q --engine=cpu "$TINY" log.tsv qrels --k1=default
    exits 0
    silent
    [[ $output == *'bm25 '*' - '*' - '* ]]
}

@test "without values a grid is tried, and as many results are looked at as the measures need" {
    ask sweep --engine=cpu "$TINY" log.tsv qrels --json
    exits 0
    cp .stdout grid.json
    python3 -c '
import json
r = json.load(open("grid.json"))
pairs = [(s["k1"], s["b"]) for s in r["settings"]]
assert len(pairs) == len(set(pairs)) == 25 and (0.9, 0.4) in pairs and (1.2, 0.75) in pairs, pairs'
    for k in 10 1000; do
        ask sweep --engine=cpu "$TINY" log.tsv qrels --json -k $k
        sed '/"seconds"/d' .stdout >values.$k
    done
    sed '/"seconds"/d' grid.json | diff - values.10
    ask sweep --engine=cpu "$TINY" log.tsv qrels --b=default,0.75 --json
    exits 0
    python3 -c '
import json, sys
assert [(s["k1"], s["b"]) for s in json.load(sys.stdin)["settings"]] == [(None, None), (None, 0.75)]' <.stdout
    # 1,000 results where a measure has no cutoff: the same as with -k 1000
    for m in map,ndcg@5 iprec@0.1 Rprec; do
        ask sweep -q --engine=cpu "$TINY" log.tsv qrels -m $m --k1=default
        cp .stdout one
        ask sweep -q --engine=cpu "$TINY" log.tsv qrels -m $m --k1=default -k 1000
        cmp one .stdout
    done
}

@test "bad numbers, scorers and measures are usage errors that name the flag" {
    for bad in --k1=x --k1=-1 --k1=0.5,,1 --k1= --k1=nan --b=1.5 --b=0,x --scorer=bm26 --scorer= --measures=mapp; do
        ask sweep --engine=cpu "$TINY" log.tsv qrels $bad
        exits 2
        complains "${bad%%=*}: "
    done
    ask sweep --engine=cpu "$TINY" log.tsv
    exits 2
    ask sweep --engine=cpu "$TINY" - - </dev/null
    exits 2
}

@test "an empty file, no query in common, a query twice and one that cannot be searched are bad input" {
    : >empty
    ask sweep --engine=cpu "$TINY" log.tsv empty
    exits 3
    complains 'empty holds no judgement'
    printf 'x 0 d01 1\n' >other
    ask sweep --engine=cpu "$TINY" log.tsv other
    exits 3
    complains 'log.tsv and other have no query in common'
    printf '1\ttwins\n1\tblocks\n' >twice
    ask sweep --engine=cpu "$TINY" twice qrels -f tsv
    exits 3
    complains 'twice:2: query 1 occurs twice (first in line 1)'
    { printf '1\ttwins\n2\t'; seq 1 1025 | sed 's/^/w/' | tr '\n' ' '; echo; } >long
    ask sweep --engine=cpu "$TINY" long qrels -f tsv
    exits 3
    complains 'long:2: the query has more than 1024 different terms'
    ask sweep --engine=cpu "$TINY" absent qrels
    exits 5
    ask sweep --engine=cpu absent log.tsv qrels
    exits 5
}
