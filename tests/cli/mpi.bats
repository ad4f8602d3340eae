# `gpuidx-mpi`: several processes build and search what one builds and searches.
load cli

setup_file() {
    [ -n "$GPUIDX_MPI" ] && command -v mpirun >/dev/null || skip "there is no gpuidx-mpi, or no mpirun"
    cd "$BATS_FILE_TMPDIR"
    python3 -c '
import random
random.seed(3)
words = ["w%d" % i for i in range(500)]
for part in range(4):
    with open("%d.jsonl" % part, "w") as f:
        for i in range(500):
            text = " ".join(words[min(int(random.paretovariate(.6)), 499)] for _ in range(random.randint(0, 40)))
            f.write("{\"id\": \"d%d\", \"text\": \"%s\"}\n" % (500 * part + i, text))
with open("log", "w") as f:
    for i in range(100):
        f.write("%d\t%s\n" % (i, " ".join(random.choice(words[:60]) for _ in range(random.randint(1, 5)))))
'
    cat [0-3].jsonl >all.jsonl
}

setup() {
    cd "$BATS_TEST_TMPDIR"
    F=$BATS_FILE_TMPDIR
}

mpi() { # N ARG...: the words are those of gpuidx-mpi, without mpirun's own
    status=0
    mpirun --oversubscribe --allow-run-as-root -n "$1" "$GPUIDX_MPI" "${@:2}" >.stdout 2>.stderr || status=$?
    output=$(cat .stdout)
    stderr=$(cat .stderr)
}

# The files of two collections are equal but for the UUID and the time, and what is computed of them.
same_collections() {
    python3 - "$1" "$2" <<'END'
import os, re, sys
def index(path):
    b = bytearray(open(path, "rb").read())
    b[16:32] = bytes(16)
    return b
a, b = sys.argv[1:]
assert sorted(os.listdir(a)) == sorted(os.listdir(b)), (os.listdir(a), os.listdir(b))
for name in os.listdir(a):
    x, y = os.path.join(a, name), os.path.join(b, name)
    if name == "MANIFEST":
        # without the first line, which has a checksum
        x, y = (re.sub(r'"uuid": "[^"]*"', "", open(f).read().split("\n", 1)[1]) for f in (x, y))
        assert x == y, (x, y)
        continue
    x, y = index(x), index(y)
    assert len(x) == len(y)
    differ = [i for i in range(len(x)) if x[i] != y[i]]
    # the header's checksum, META's checksum in the table of sections, and the time in META
    assert len(differ) <= 8 + 8 + 20, differ
END
}

@test "four processes build the collection that one builds, and answer as one" {
    for corpus in "$F/all.jsonl" "$F/0.jsonl $F/1.jsonl $F/2.jsonl $F/3.jsonl"; do
        rm -rf one four
        mpi 1 build $corpus --parts=4 -o one
        exits 0
        mpi 4 build $corpus -o four
        exits 0
        complains '4 parts, built by 4 processes'
        same_collections one four
        [ ! -e four.parts ]
        "$GPUIDX" check -q four
        "$GPUIDX" build -q "$F/all.jsonl" -o file.gx --force
        for op in or and and-or; do
            for join in never always; do
                "$GPUIDX" replay -q file.gx "$F/log" --engine=cpu --op=$op -k 30 --run one.run --force >.out
                mpi 4 replay four "$F/log" --engine=cpu --join=$join --op=$op -k 30 --run four.run --force --verify
                exits 0
                says ' 0 differ'
                cmp one.run four.run
            done
        done
        [ -s four.run ]
    done
}

@test "a process that fails ends all, and leaves what is done for the next time" {
    cp "$F"/[01].jsonl .
    printf '{"id": 1\n' >bad.jsonl
    mpi 3 build 0.jsonl 1.jsonl bad.jsonl -f jsonl -o c --parts=3
    [ "$status" -ne 0 ]
    complains 'bad.jsonl'
    [ ! -e c ]
    rm -rf c.parts

    cp "$F/2.jsonl" rest.jsonl
    mkfifo pipe.jsonl # a process waits for it until it is killed
    mpirun --oversubscribe --allow-run-as-root -n 3 "$GPUIDX_MPI" build 0.jsonl 1.jsonl pipe.jsonl rest.jsonl -o c \
        --on-error=skip 2>/dev/null &
    job=$!
    wait_until test -e c.parts/part-000001.gx
    wait_until test -e c.parts/part-000002.gx
    kill -9 "$(pgrep -P $job | head -n 1)"
    code=0
    wait $job || code=$?
    [ "$code" -ne 0 ]
    [ ! -e c ]
    [ -e c.parts/part-000001.gx ]
    before=$(stat -c %i c.parts/part-000001.gx)
    mpi 3 build 0.jsonl pipe.jsonl rest.jsonl -o c --on-error=skip # another command does not take them
    [ "$status" -ne 0 ]
    complains 'another build'
    cat "$F/3.jsonl" >pipe.jsonl &
    mpi 3 build 0.jsonl 1.jsonl pipe.jsonl rest.jsonl -o c --on-error=skip
    exits 0
    [ "$before" = "$(stat -c %i c/part-000001.gx)" ]
    "$GPUIDX" check -q c
    "$GPUIDX" info c | grep -q 'documents *2,000'
}

@test "what processes cannot do is told once" {
    mpi 2 build "$F/all.jsonl" -o c
    exits 0
    mpi 3 replay c "$F/log"
    complains 'too few for 3 processes'
    [ "$(grep -c 'too few' .stderr)" = 1 ]
    mpi 2 replay c "$F/log" --threads=4
    complains 'one thread'
    mpi 2 replay "$F/all.jsonl" "$F/log"
    [ "$status" -ne 0 ]
    mpi 2 build "$F/all.jsonl" -o c
    complains 'c exists'
    mpi 2 build "$F/0.jsonl" "$F/1.jsonl" - -o d
    complains 'standard input'
    mpi 2 neither
    complains 'commands build and replay'
}
