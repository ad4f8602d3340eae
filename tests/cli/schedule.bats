# What schedules queries: `gpuidx calibrate`.
load cli

setup_file() { build_tiny; }

setup() {
    cd "$BATS_TEST_TMPDIR"
    printf '%s\n' '1:skipping blocks' '2:compression of lists' '3:identical twins' '4:blocks lists skipping' >log
}

@test "calibrate keeps a profile, tells its errors, and replaces none unasked" {
    ask calibrate --engine=cpu "$TINY" log -o p.profile --runs 2 --ablate
    exits 0
    says 'held out'
    says 'without number of terms'
    says_not 'GPU, batches'
    complains 'the profile is in p.profile'
    python3 - <<'END'
import json
p = json.load(open("p.profile"))
assert p["schema"] == 1 and list(p["models"]) == ["cpu"]
assert all(v >= 0 for leaf in p["models"]["cpu"] for v in leaf.values())
END
    ask calibrate --engine=cpu "$TINY" log -o p.profile
    exits 5
    complains 'p.profile exists'
    ask calibrate --engine=cpu "$TINY" log log -o p.profile --force --report=- --runs 1 -q
    exits 0
    python3 -c '
import json, sys
r = json.load(sys.stdin)
assert r["fitted_queries"] == 4 and r["held_out_queries"] == 4 and r["relative_errors"]["gpu_batch"]["held_out"] is None
assert r["relative_errors"]["cpu"]["held_out"]["costs"] > 0' <.stdout
}

@test "a profile goes beside the index, or into the cache folder where that cannot be" {
    cp "$TINY" mine.gx
    ask calibrate --engine=cpu -q mine.gx log --runs 1
    exits 0
    [ -s mine.gx.profile ]
    [ "$(id -u)" != 0 ] || skip "root can write everywhere"
    mkdir locked && cp "$TINY" locked/x.gx && chmod 555 locked
    XDG_CACHE_HOME=$PWD/cache ask calibrate --engine=cpu -q locked/x.gx log --runs 1
    exits 0
    [ "$(ls cache/gpuidx | wc -l)" = 1 ]
    chmod 755 locked
}

@test "calibrate refuses a log without a query that the index can answer" {
    : >empty
    ask calibrate --engine=cpu "$TINY" empty -o p
    exits 3
    complains 'empty'
    echo '1:zzzz' >unknown
    ask calibrate --engine=cpu "$TINY" unknown -o p
    exits 3
    complains 'unknown has no query with a term of the index'
    [ ! -e p ]
    ask calibrate --engine=cpu "$TINY" missing -o p
    exits 5
    complains 'missing'
}
