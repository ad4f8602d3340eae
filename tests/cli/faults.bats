# Outputs, whatever happens: closed descriptors, devices, signals, limits, orphans, damaged inputs.
load cli

setup_file() {
    build_tiny
    LOG=$BATS_FILE_TMPDIR/log
    for i in $(seq 2000); do echo 'search engine index'; done >"$LOG"
    export LOG
    "$GPUIDX" generate -q -o "$BATS_FILE_TMPDIR/big" -n 20000 --lists 64 --queries 10
    "$GPUIDX" import -q "$BATS_FILE_TMPDIR/big" -o "$BATS_FILE_TMPDIR/big.gx"
    export BIG=$BATS_FILE_TMPDIR/big.gx
}

# The folder has no other files than these (and the captured output).
holds_only() {
    local have want
    have=$(ls -A | grep -v '^\.std' | sort | tr '\n' ' ')
    want=$([ $# -eq 0 ] || printf '%s\n' "$@" | sort | tr '\n' ' ')
    [ "$have" = "$want" ] || { echo "the folder holds: $have" >&2; return 1; }
}

needs() {
    command -v "$1" >/dev/null || skip "$1 is not installed"
}

# Run with a fault put into the n-th call: inject CALL:what:when=N command...
inject() {
    local call=${1%%:*} fault=$1
    shift
    status=0
    strace -f -o .strace -e trace="$call" -e inject="$fault" "$GPUIDX" "$@" >.stdout 2>.stderr || status=$?
    rm -f .strace
    output=$(cat .stdout)
    stderr=$(cat .stderr)
}

@test "with closed descriptors no message goes into an output" {
    printf '{"id":"1","text":"a"}\nbad\n{"id":"2","text":"b"}\n' >c.jsonl
    for closed in '0<&-' '1>&-' '2>&-' '0<&- 1>&-' '1>&- 2>&-' '0<&- 1>&- 2>&-'; do
        eval "\"\$GPUIDX\" build --on-error=skip --force c.jsonl -o x.gx $closed" || true
        ask check x.gx
        exits 0
        eval "\"\$GPUIDX\" export x.gx --force -o x.ciff $closed" || true
        ask import x.ciff -o y.gx --force
        exits 0
        eval "\"\$GPUIDX\" replay x.gx c.jsonl -f lines --force --run x.run --report x.json $closed" || true
        python3 -c 'import json; json.load(open("x.json"))'
    done
}

@test "a corpus from a closed standard input is an error" {
    status=0
    "$GPUIDX" build -f plain - -o x.gx 0<&- 2>.stderr || status=$?
    exits 5
    holds_only
}

@test "a result for a closed standard output is an error" {
    status=0
    "$GPUIDX" query "$TINY" search 1>&- 2>.stderr || status=$?
    exits 5
}

@test "devices, FIFOs and links are written through or refused, never replaced" {
    mkfifo pipe
    cat pipe >piped &
    ask export -q "$TINY" -o pipe -f ciff --force
    exits 0
    wait $!
    [ -p pipe ]
    ask export -q "$TINY" -o file.ciff
    cmp piped file.ciff
    mkdir there
    echo old >there/real
    ln -s there/real link
    ask export -q "$TINY" -o link -f ciff
    exits 5
    complains 'link exists'
    ask export -q "$TINY" -o link -f ciff --force
    exits 0
    [ -L link ]
    cmp there/real file.ciff
    ask build -q "$DATA/tiny.jsonl" -o pipe --force
    exits 5
    complains 'pipe exists and is not a file'
    [ -p pipe ]
    ln -s nowhere dangling
    for force in '' --force; do
        ask export -q "$TINY" -o dangling -f ciff $force
        exits 5
        ask recode -q "$TINY" -o dangling $force
        exits 5
    done
    [ -L dangling ]
    "$GPUIDX" export -q "$TINY" -o /dev/stdout -f ciff | cmp - file.ciff
    mkdir directory
    ask export -q "$TINY" -o directory -f ciff --force
    exits 5
    complains 'directory exists and is not a file'
}

@test "a character device stays one" {
    mknod null c 1 3 2>/dev/null || skip 'only root makes devices'
    ask export -q "$TINY" -o null -f ciff --force
    exits 0
    [ -c null ]
    mknod g.docs c 1 3
    mknod g.queries c 1 3
    ask generate -q -n 1000 --lists 64 -o g --force
    exits 0
    [ -c g.docs ] && [ -c g.queries ]
    ask replay -q "$TINY" "$LOG" --run null --force
    exits 0
    ask replay -q "$TINY" "$LOG" --report null --force
    exits 0
    [ -c null ]
}

@test "generate --force that fails leaves the old collection whole" {
    ask generate -q -o g -n 1000 --lists 64 --queries 5
    cp g.queries old
    status=0
    (ulimit -v 400000; exec "$GPUIDX" generate -q -o g -n 400000000 --lists 64 --force) 2>.stderr || status=$?
    exits 6
    cmp g.queries old
    holds_only g.docs g.freqs g.sizes g.terms g.documents g.queries old
}

@test "what killed processes have left is swept away, what living ones use is not" {
    touch .gpuidx-0123456789abcdef.tmp .gpuidx-0123456789abcdef .gpuidx-0123456789abcdeg.tmp \
        .gpuidx-00000000000000aa.tmp
    needs flock
    exec 7<.gpuidx-00000000000000aa.tmp
    flock 7
    ask recode -q "$TINY" -o x.gx
    exits 0
    exec 7<&-
    holds_only x.gx .gpuidx-0123456789abcdef .gpuidx-0123456789abcdeg.tmp .gpuidx-00000000000000aa.tmp
}

@test "a link with a temporary file's name is not followed" {
    echo precious >victim
    ln -s victim .gpuidx-0123456789abcdef.tmp
    ask replay -q "$TINY" "$LOG" --run x.run
    exits 0
    [ "$(cat victim)" = precious ]
    [ -L .gpuidx-0123456789abcdef.tmp ] && [ ! -L x.run ]
}

@test "signals between the naming of a file and its renaming leave nothing" {
    needs strace
    ask recode -q "$TINY" -o x.gx
    for signal in INT TERM HUP; do
        for what in "recode -q $TINY" "build -q $DATA/tiny.jsonl" "build -q --order=bp $DATA/tiny.jsonl" \
            "export -q $TINY -f ciff"; do
            inject linkat:signal=$signal:when=1 $what -o x.gx --force
            holds_only x.gx
            inject linkat:signal=$signal:when=2 $what -o x.gx --force
            holds_only x.gx
            inject rename:signal=$signal:when=1 $what -o x.gx --force
            holds_only x.gx
        done
    done
}

@test "SIGHUP ends a replay without leaving a part of its run" {
    for i in $(seq 300); do cat "$LOG"; done >long
    for signal in INT TERM HUP; do
        interrupt $signal replay -q --engine=cpu --rate=1000 "$TINY" long --run x.run
        [ "$status" -gt 128 ]
        complains interrupted
        holds_only long
    done
}

@test "an output that is in place is never said to be nothing" {
    needs strace
    ask recode -q "$TINY" -o x.gx
    cp x.gx old.gx
    inject rename:signal=TERM:when=1 build -q --order=bp "$DATA/tiny.jsonl" -o x.gx --force
    exits 143
    if cmp -s x.gx old.gx; then complains 'nothing was written'; else complains 'x.gx is complete and in place'; fi
    ! cmp -s x.gx old.gx
    ask check x.gx
    exits 0
}

@test "a failure after the output got its name says that it is in place, with exit code 5" {
    needs strace
    # The file is the first to be synced, its directory the second.
    for what in "recode -q $TINY" "export -q $TINY -f ciff" "build -q $DATA/tiny.jsonl"; do
        inject fsync:error=EIO:when=2 $what -o x.gx --force
        exits 5
        complains 'x.gx is in place, but'
        inject fsync:error=EIO:when=1 $what -o y.gx --force
        exits 5
        [ ! -e y.gx ]
    done
    # Few descriptors: the failure comes before the output is there, never after.
    for n in $(seq 3 12); do
        rm -f x.gx
        status=0
        (ulimit -n "$n"; exec "$GPUIDX" recode -q "$TINY" -o x.gx) 2>.stderr || status=$?
        [ "$status" -eq 0 ] || [ ! -e x.gx ]
    done
}

@test "a set of files is never read in part old and in part new, wherever its writer is killed or fails" {
    needs strace
    ask reorder -q "$TINY" -o other.gx --order=random
    ask export -q other.gx -f ds2i -o old
    ask export -q "$TINY" -f ds2i -o new
    is_set() { # do all files of s equal those of $1?
        local suffix
        for suffix in docs freqs sizes terms documents; do cmp -s s.$suffix $1.$suffix || return 1; done
    }
    mixed=0
    for call in unlink linkat rename fsync; do
        for n in $(seq 12); do
            for fault in signal=KILL error=EIO; do
                for suffix in docs freqs sizes terms documents; do cp old.$suffix s.$suffix; done
                inject $call:$fault:when=$n export -q "$TINY" -f ds2i -o s --force
                if ! is_set old && ! is_set new; then
                    mixed=$((mixed + 1))
                    [ ! -e s.docs ] || { echo "$call $n $fault: s.docs stands among others" >&2; return 1; }
                    [ $fault = signal=KILL ] || [[ $stderr == *'s.docs is missing now'* ]] || show
                    ask import -q s -f ds2i -o x.gx
                    exits 5
                fi
                [ "$status" -ne 0 ] || is_set new || [ ! -e s.docs ]
            done
        done
    done
    [ "$mixed" -gt 0 ]
}

@test "three exports at once without --force: one wins, two are told" {
    for what in "export -q $BIG -f ciff -o" "replay -q $TINY $LOG --run"; do
        for round in 1 2 3 4; do
            rm -rf c c.* codes
            for i in 1 2 3; do
                (code=0; "$GPUIDX" $what c 2>/dev/null >/dev/null || code=$?; echo $code >>codes) &
            done
            wait
            [ "$(sort codes | tr '\n' ' ')" = '0 5 5 ' ]
        done
    done
}

@test "a report is replaced when it is complete" {
    echo old >r.json
    status=0
    (ulimit -f 1; exec "$GPUIDX" replay -q "$TINY" "$LOG" --report r.json --force) >/dev/null 2>.stderr || status=$?
    exits 5
    [ "$(cat r.json)" = old ]
}

@test "the limit of file size is an error, not a kill" {
    for what in "recode -q $BIG" "export -q -f ciff $BIG" "build -q --limit=100000 -f plain $LOG"; do
        status=0
        (ulimit -f 8; exec "$GPUIDX" $what -o x.out) 2>.stderr || status=$?
        exits 5
        complains_of_size=$(cat .stderr)
        [[ $complains_of_size == *'File too large'* ]]
        holds_only
    done
}

@test "an index truncated under a reader ends it with a message and exit code 4" {
    cp "$BIG" q.gx
    mkfifo questions
    "$GPUIDX" query -q q.gx - -f tsv <questions >.stdout 2>.stderr &
    exec 7>questions
    echo 05 >&7
    wait_until test -s .stdout # its answer
    : >q.gx
    echo '01 02 03' >&7
    exec 7>&-
    status=0
    wait $! || status=$?
    stderr=$(cat .stderr)
    exits 4
    complains 'truncated or overwritten while it was read'
}

@test "an index that was read whole may be truncated under its reader" {
    for how in read map; do
        cp "$BIG" $how.gx
        rm -f questions
        mkfifo questions
        "$GPUIDX" query -q --load=$how $how.gx - -f tsv <questions >$how 2>.stderr &
        exec 7>questions
        echo 05 >&7
        wait_until test -s $how # its answer
        [ $how = map ] || : >$how.gx
        echo '01 02 03' >&7
        exec 7>&-
        wait $!
    done
    cmp read map
    ask query -q --load=copy "$BIG" 01
    exits 2
    complains '--load'
}

@test "an index that shrinks while it is read is corrupt, one that cannot be read is an error" {
    needs strace
    cp "$BIG" q.gx
    local fault
    for fault in retval=0 error=EIO error=EINTR; do # of the first read of the index, not of the loader's
        status=0
        strace -f -o .strace -P q.gx -e trace=pread64 -e inject=pread64:$fault:when=1 \
            "$GPUIDX" query -q --load=read q.gx '01 02 03' >.stdout 2>.stderr || status=$?
        stderr=$(cat .stderr)
        case $fault in
        retval=0) exits 4 && complains 'q.gx was truncated while it was read' ;;
        error=EIO) exits 5 && complains 'cannot read q.gx: Input/output error' ;;
        error=EINTR) exits 0 ;;
        esac
    done
}

@test "a file that is replaced keeps its mode" {
    ask recode -q "$TINY" -o x.gx
    chmod 600 x.gx
    ask recode -q "$TINY" -o x.gx --force
    ask export -q "$TINY" -o x.ciff
    chmod 640 x.ciff
    ask export -q "$TINY" -o x.ciff --force
    [ "$(stat -c %a x.gx x.ciff | tr '\n' ' ')" = '600 640 ' ]
}

@test "outputs may have names of 255 bytes" {
    name=$(printf 'x%.0s' $(seq 255))
    ask export -q "$TINY" -o "$name" -f ciff
    exits 0
    ask replay -q "$TINY" "$LOG" --run "$name" --force
    exits 0
    ask build -q --order=bp "$DATA/tiny.jsonl" -o "$name" --force
    exits 0
    holds_only "$name"
}

@test "import refuses an analyzer that cannot be read, and lengths that are not the sums of tfs" {
    ask export -q "$TINY" -o good.ciff
    sed 's/"tokenizer"/"tokenizes"/' good.ciff >bad.ciff
    ask import -q bad.ciff -o x.gx
    exits 3
    complains 'bad.ciff: the description'
    ask import -q bad.ciff -o x.gx --analyzer=english
    exits 0
    python3 - <<'PYTHON'
def varint(n):
    return (bytes([n & 127 | 128]) + varint(n >> 7)) if n > 127 else bytes([n])
def number(tag, n):
    return varint(tag << 3) + varint(n) if n else b""
def text(tag, s):
    return varint(tag << 3 | 2) + varint(len(s)) + s
def message(b):
    return varint(len(b)) + b
for name, lengths in ("equal", (1, 3)), ("swapped", (3, 1)), ("lossy", (3, 3)):
    postings = text(4, number(2, 1)) + text(4, number(1, 1) + number(2, 3))
    head = number(1, 1) + number(2, 1) + number(3, 2) + number(4, 1) + number(5, 2) + number(6, sum(lengths))
    out = message(head) + message(text(1, b"a") + number(2, 2) + number(3, 4) + postings)
    for d, n in enumerate(lengths):
        out += message(number(1, d) + text(2, b"d%d" % d) + number(3, n))
    open(name + ".ciff", "wb").write(out)
PYTHON
    for name in equal lossy; do
        ask import -q $name.ciff -o $name.gx
        exits 0
        ask check $name.gx
        exits 0
    done
    ask import -q swapped.ciff -o swapped.gx
    exits 3
    complains 'swapped.ciff: document 0 has length 3, but its tfs add up to 1'
}

@test "a FIFO as an index is refused at once" {
    mkfifo fifo.gx
    status=0
    timeout 60 "$GPUIDX" check fifo.gx 2>.stderr || status=$?
    stderr=$(cat .stderr)
    exits 5
    complains 'it is not a file'
}
