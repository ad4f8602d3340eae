# cli.bash: what every test of the command line begins with:
#
#   load cli                              # at the top of tests/cli/NAME.bats; then its name into tests/cli/meson.build
#   setup_file() { build_tiny; }              # if it needs an index: $TINY, of tests/data/tiny.jsonl
#
#   @test "what is true" {
#       ask query "$TINY" 'some words'        # runs $GPUIDX: $status, $output (stdout), $stderr
#       exits 0                               # the exit code
#       says 'part of stdout'
#       complains 'part of stderr'
#       is_golden query-some-words.txt        # stdout equals tests/cli/golden/...; GOLDEN=update bats ... writes it
#   }
#
# Each test has its own empty folder, $BATS_TEST_TMPDIR, and stands in it. Golden files are looked at by a person before
# they are committed.

: "${GPUIDX:?the path of the program to test}"
DATA=${GX_TEST_DATA:?the path of tests/data}
HERE=$BATS_TEST_DIRNAME
unset NO_COLOR
export LC_ALL=C.UTF-8 TERM=xterm

setup() {
    cd "$BATS_TEST_TMPDIR"
}

# An index of the tiny collection, texts and all, once a file of tests.
build_tiny() {
    export TINY=$BATS_FILE_TMPDIR/tiny.gx
    "$GPUIDX" build -q "$DATA/tiny.jsonl" --store=text -o "$TINY"
}

ask() {
    status=0
    "$GPUIDX" "$@" >"$BATS_TEST_TMPDIR/.stdout" 2>"$BATS_TEST_TMPDIR/.stderr" || status=$?
    output=$(cat "$BATS_TEST_TMPDIR/.stdout")
    stderr=$(cat "$BATS_TEST_TMPDIR/.stderr")
}

show() {
    printf '%s\n' "status: $status" "stdout:" "$output" "stderr:" "$stderr" >&2
    return 1
}

# Wait until a command succeeds, for a minute at most: what a test waits for, it never expects within a fixed time.
wait_until() {
    local end=$((SECONDS + 60))
    while ((SECONDS < end)); do
        ! "$@" || return 0
        sleep 0.1
    done
    echo "it did not come: $*" >&2
    return 1
}

# Does process $1, which has become the program, catch signal $2? A process that has ended counts too.
catches() {
    local mask
    case $(readlink "/proc/$1/exe") in */bash | */env) return 1 ;; esac
    mask=$(sed -n 's/^SigCgt:[[:blank:]]*//p' "/proc/$1/status")
    ! grep -q '^State:[[:blank:]]*Z' "/proc/$1/status" || return 0
    ((16#${mask:-0} >> ($(kill -l "$2") - 1) & 1))
}

# Run $GPUIDX in the background and send it a signal, once it catches that: interrupt SIGNAL query ... What comes then
# must not depend on how far the program is.
interrupt() {
    local signal=$1 pid
    shift
    status=0
    # a shell without job control lets its children ignore INT
    env --default-signal=INT,HUP "$GPUIDX" "$@" >.stdout 2>.stderr 3>&- &
    pid=$!
    wait_until catches $pid "$signal"
    sleep 0.2 # on most machines the program is in the midst of its work by then
    kill -"$signal" $pid
    wait $pid || status=$?
    stderr=$(cat .stderr)
}

exits() {
    [ "$status" -eq "$1" ] || { echo "the exit code is not $1" >&2; show; }
}

says() {
    [[ $output == *"$1"* ]] || { echo "stdout lacks: $1" >&2; show; }
}

says_not() {
    [[ $output != *"$1"* ]] || { echo "stdout has: $1" >&2; show; }
}

complains() {
    [[ $stderr == *"$1"* ]] || { echo "stderr lacks: $1" >&2; show; }
}

silent() {
    [ -z "$stderr" ] || { echo "stderr is not empty" >&2; show; }
}

# Stdout against a golden file, times aside.
is_golden() {
    sed -e 's/ in [0-9.]* m\{0,1\}s on the / in T ms on the /' -e 's/"seconds":[0-9.]*/"seconds":T/' \
        "$BATS_TEST_TMPDIR/.stdout" >"$BATS_TEST_TMPDIR/.timeless"
    if [ "${GOLDEN-}" = update ]; then
        mkdir -p "$HERE/golden"
        cp "$BATS_TEST_TMPDIR/.timeless" "$HERE/golden/$1"
    fi
    diff -u "$HERE/golden/$1" "$BATS_TEST_TMPDIR/.timeless" >&2
}
