# `gpuidx eval`: what is printed, and what bad qrels and runs get.
load cli

# q1: relevances 1, 0, 2, 0, 0 of 3 relevant documents; q2: none found; q3: nothing relevant; q4: not answered.
setup() {
    cd "$BATS_TEST_TMPDIR"
    printf '%s\n' 'q1 0 a 2' 'q1 0 b 1' 'q1 0 c 0' 'q1 0 d 1' 'q2 0 x 1' 'q3 0 y 0' 'q4 0 z 1' >qrels
    printf '%s\n' 'q1 Q0 a 1 3.0 t' 'q1 Q0 b 2 5.5 t' 'q1 Q0 c 3 1.0 t' 'q1 Q0 u 4 4 t' \
        'q2 Q0 w 1 2 t' 'q3 Q0 y 1 2 t' >run
}

@test "values are printed as trec_eval prints them" {
    ask eval qrels run -q -m map,P@2,num_ret
    exits 0
    [ "$output" = "$(printf '%-22s\t%s\t%s\n' \
        map q1 0.5556 P_2 q1 0.5000 num_ret q1 4 \
        map q2 0.0000 P_2 q2 0.0000 num_ret q2 1 \
        map q3 0.0000 P_2 q3 0.0000 num_ret q3 1 \
        map all 0.1852 P_2 all 0.1667 num_ret all 6)" ]
    complains '1 of 4 judged queries have no answer'
}

@test "--complete counts queries without answers, and says nothing" {
    ask eval qrels run --complete -m num_q,map
    exits 0
    silent
    [ "$output" = "$(printf '%-22s\t%s\t%s\n' num_q all 4 map all 0.1389)" ]
}

@test "--json holds the same values" {
    ask eval qrels run --json -q --quiet -m map,num_rel
    exits 0
    silent
    python3 -c '
import json, sys
o = json.load(sys.stdin)
assert o["schema"] == 1 and o["queries_evaluated"] == 3 and o["queries_missing_from_run"] == 1
assert abs(o["all"]["map"] - 5 / 27) < 1e-12 and o["all"]["num_rel"] == 4
assert abs(o["queries"]["q1"]["map"] - 5 / 9) < 1e-12' <<<"$output"
}

@test "compressed files and standard input are read" {
    gzip -k qrels
    ask eval qrels.gz - -m recip_rank <run
    exits 0
    says 0.3333
}

@test "bad lines are named, with exit code 3" {
    echo 'q1 Q0 a 9 1.0 t' >>run
    ask eval qrels run
    exits 3
    complains 'run:7: document a is there twice for query q1 (first in line 1)'
    printf 'q1 0 a\n' >short
    ask eval short run
    exits 3
    complains 'short:1: 3 fields where a line of qrels has 4'
    ask eval qrels qrels
    exits 3
    complains 'qrels:1: 4 fields where a line of a run has 6'
}

@test "an absent file is exit code 5, an unknown measure 2" {
    ask eval qrels absent
    exits 5
    complains absent
    ask eval qrels run -m mapp
    exits 2
    complains 'no measure "mapp"'
    ask eval qrels
    exits 2
}

@test "files without a query in common get a warning" {
    echo 'other Q0 a 1 1 t' >run
    ask eval qrels run -m num_q
    exits 0
    complains 'no query in common'
    says 0
}

@test "standard input cannot be both files" {
    ask eval - - </dev/null
    exits 2
}

# The same answers as run's, but q1's and q2's relevant documents come first.
better_run() {
    printf '%s\n' 'q1 Q0 a 1 9 t' 'q1 Q0 b 2 8 t' 'q1 Q0 d 3 7 t' 'q2 Q0 x 1 2 t' 'q3 Q0 y 1 2 t' >better
}

@test "several runs stand side by side, with differences and paired tests" {
    better_run
    ask eval qrels run better -m map,num_rel_ret
    exits 0
    says '3 queries; differences from run'
    says 'at most 100,000 trials, seed 1'
    complains '1 of 4 judged queries are not answered by every run'
    [[ $output == *'map'*' run '*'0.1852'*' better '*'0.6667'*'+0.4815'*'     2       0    0.2379      0.5000'* ]]
    [[ $output == *'num_rel_ret'*' run '*' 2'*' better '*' 4'*'+2'* ]]
    ask eval qrels run better better --complete -q -m map
    exits 0
    silent
    says $'map                   \tq1\t0.5556\t1.0000\t1.0000'
    says '4 queries'
}

@test "--json of several runs holds values, differences and tests" {
    better_run
    ask eval qrels run better --json -q --quiet --seed=7 --trials=4 -m map,gm_map
    exits 0
    python3 -c '
import json, math, sys
o = json.load(sys.stdin)
assert o["schema"] == 1 and o["queries_compared"] == 3 and o["seed"] == 7 and o["trials"] == 4
a, b = o["runs"]
assert a["run"] == "run" and b["run"] == "better" and "against_first" not in a
assert abs(b["all"]["map"] - 2 / 3) < 1e-12 and b["queries"]["q2"]["map"] == 1 and "gm_map" not in b["queries"]["q2"]
assert abs(b["all"]["gm_map"] - 1e-5 ** (1 / 3)) < 1e-12
t = b["against_first"]["map"]
assert abs(t["difference"] - 13 / 27) < 1e-12
assert t["better"] == 2 and t["worse"] == 0 and not t["random_exact"]' <<<"$output"
}

@test "the randomisation test is the same for the same seed" {
    better_run
    for seed in 5 5 6 8; do
        ask eval qrels run better --quiet --json --trials=7 --seed=$seed -m map
        exits 0
        grep random_p <<<"$output" >>p
    done
    [ "$(sed -n 1p p)" = "$(sed -n 2p p)" ]
    [ "$(sort -u p | wc -l)" -gt 1 ]
}

@test "runs without a query in common are not compared" {
    echo 'q9 Q0 a 1 1 t' >other
    ask eval qrels run other
    exits 3
    complains 'no query of qrels is answered by all 2 runs'
    : >none
    ask eval qrels run none
    exits 3
    ask eval none run run
    exits 3
    ask eval qrels run other --complete -m num_q
    exits 0
    ask eval qrels run - - </dev/null
    exits 2
    ask eval qrels run run --trials=0
    exits 2
    ask eval qrels run run -m iprec@2
    exits 2
    complains 'no measure "iprec@2"'
}

@test "a run whose ids are written otherwise than those of the judgements is told" {
    printf '1 0 CACM-0001 1\n1 0 CACM-0002 1\n' >qrels
    printf '1 Q0 html/CACM-0001.html 1 2.5 x\n' >run
    ask eval -m map qrels run
    exits 0
    says '0.0000'
    complains 'not one of its documents is judged'
    complains 'html/CACM-0001.html in one, CACM-0001 in the other'
    printf '1 Q0 CACM-0002 1 2.5 x\n' >run
    ask eval -m map qrels run
    [[ $stderr != *'not one'* ]]
}

@test "judgements of BEIR have three columns and a head" {
    printf 'query-id\tcorpus-id\tscore\n1\ta\t1\n1\tb\t0\n' >beir.tsv
    printf '1 0 a 1\n1 0 b 0\n' >trec.txt
    printf '1 Q0 b 1 3 x\n1 Q0 a 2 2 x\n' >run
    "$GPUIDX" eval trec.txt run >expected
    ask eval beir.tsv run
    exits 0
    [ "$output" = "$(cat expected)" ]
    printf '1 0 c 1\n' >>beir.tsv
    ask eval beir.tsv run
    exits 3
    complains 'beir.tsv:4: 4 fields where a line of qrels has 3: query-id corpus-id score'
    printf '1\ta\t1\n' >headless
    ask eval headless run
    exits 3
}
