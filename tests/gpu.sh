#!/usr/bin/env bash
# gpu.sh: what is to be run on a machine with a GPU, and again on one with two: the tests that need one, whole;
# then, on a small set, the same under compute-sanitizer, which must find nothing there and must find bugs that were
# put there on purpose.
#
#   tests/gpu.sh DIR [test|sanitize|seeded]...    DIR holds the built test programs; all three by default
#
# GX_SANITIZER_CASES (150) says how many random cases the slow tools get, GX_WEIGHT_CASES (10000) how many
# test_weights.
set -uo pipefail
(($#)) || { sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 2; }
dir=$1; shift
(($#)) || set -- test seeded sanitize
failed=0
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)

say() { printf '%s\n' "$*"; }
check() { # what, exit status wanted (0, or "not" for any other), command...
    local what=$1 want=$2 log status
    shift 2
    log=$("$@" 2>&1); status=$?
    if { [[ $want == not ]] && ((status != 0 && status != 77)); } || { [[ $want == 0 ]] && ((status == 0)); }; then
        say "ok    $what"
        grep -E 'seed|cases|SKIPPED.*GPU|ERROR SUMMARY|RACECHECK SUMMARY' <<<"$log" | head -6 | sed 's/^/      /'
    else
        say "FAIL  $what (exit status $status)"
        tail -25 <<<"$log" | sed 's/^/      /'
        failed=1
    fi
}

for part; do
    case $part in
    test)
        for t in device upload_cuda list_kernels merge_find bounds_cuda select_cuda sub_batch_cuda wah_cuda \
            containers_cuda bitmap_columns_cuda bitmaps query replicas session residency approximate conditions \
            filter facets_gpu fields_gpu phrases_gpu changes service service_chunks query_bench wide; do
            if [[ -x $dir/test_$t ]]; then
                check "test_$t" 0 "$dir/test_$t"
            else
                say "none  test_$t: not in $dir"
            fi
        done
        check "test_weights" 0 env GX_TEST_FILTER='*gpu' GX_TEST_CASES="${GX_WEIGHT_CASES:-10000}" \
            "$dir/test_weights" ;;
    seeded)
        check "memcheck finds a read past the end" not \
            "$sanitizer" --tool memcheck --error-exitcode 9 "$dir/seeded_bugs" read
        check "racecheck finds a race in shared memory" not \
            "$sanitizer" --tool racecheck --error-exitcode 9 "$dir/seeded_bugs" race
        check "synccheck finds a diverging barrier" not \
            "$sanitizer" --tool synccheck --error-exitcode 9 "$dir/seeded_bugs" barrier ;;
    sanitize)
        for tool in memcheck racecheck synccheck; do
            tests='*(GPU)'
            [[ $tool == racecheck ]] && tests='answers*(GPU)' # searches of seconds become hours there
            check "$tool: test_query" 0 env GX_TEST_CASES="${GX_SANITIZER_CASES:-150}" GX_TEST_FILTER="$tests" \
                "$sanitizer" --tool $tool --error-exitcode 9 "$dir/test_query"
            check "$tool: test_weights" 0 env GX_TEST_CASES=4 GX_TEST_DOCS=1500 GX_TEST_FILTER='*gpu' \
                "$sanitizer" --tool $tool --error-exitcode 9 "$dir/test_weights"
            check "$tool: damaged lists of every codec" 0 env GX_TEST_FILTER=damaged_lists_harm_nobody GX_TEST_CASES=8 \
                "$sanitizer" --tool $tool --error-exitcode 9 "$dir/test_list_kernels"
            check "$tool: the best of many candidates" 0 \
                "$sanitizer" --tool $tool --error-exitcode 9 "$dir/test_select_cuda"
            check "$tool: the OR of WAH columns" 0 \
                "$sanitizer" --tool $tool --error-exitcode 9 "$dir/test_wah_cuda"
            for t in containers bitmap_columns; do
                check "$tool: sets of rows from $t" 0 env GX_TEST_CASES=8 \
                    "$sanitizer" --tool $tool --error-exitcode 9 "$dir/test_${t}_cuda"
            done
        done ;;
    *) say "no such part: $part"; exit 2 ;;
    esac
done
exit $failed
