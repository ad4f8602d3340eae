# `gpuidx eval`: what is printed, and what bad qrels and runs get.
load cli

# q1: relevances 1, 0, 2, 0, 0 of 3 relevant documents; q2: none found; q3: nothing relevant; q4: not answered.
setup() {
    cd "$BATS_TEST_TMPDIR"
    printf '%s\n' 'q1 0 a 2' 'q1 0 b 1' 'q1 0 c 0' 'q1 0 d 1' 'q2 0 x 1' 'q3 0 y 0' 'q4 0 z 1' >qrels
    printf '%s\n' 'q1 Q0 a 1 3.0 t' 'q1 Q0 b 2 5.5 t' 'q1 Q0 c 3 1.0 t' 'q1 Q0 u 4 4 t' 'q2 Q0 w 1 2 t' 'q3 Q0 y 1 2 t' >run
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
