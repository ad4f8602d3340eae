#!/usr/bin/env python3
"""collection.py: what faults leave of a collection that is being changed.

    collection.py kills | space | calls | all  --program=GPUIDX [--runs=N] [--seed=S]

    kills   SIGKILL at random moments of add, delete, update, merge and collect, N times (30)
    space   file systems of every size from too small to large enough, N of them an operation (all: 0; needs root)
    calls   one system call fails, N of them an operation (all: 0; needs strace)

Afterwards the collection must be whole (check --level=full) and be one of the commits of the operation: what it
exports equals what an index built of that commit's documents exports, byte by byte. After the next command that
changes it no file lies in the folder that the manifest does not name. A failure is told by a message and an exit
code, and the last commit answers. A collection that collect was to make is there, whole, or not at all. Exit code 1:
a rule was broken; 77: what is needed is missing.
"""
import argparse, hashlib, json, os, random, re, shutil, signal, subprocess, sys, tempfile, time

WORDS = ["w%02d" % i for i in range(70)]
FILES = [".docs", ".freqs", ".sizes", ".terms", ".documents"]


class Broken(Exception):
    pass


def make_docs(rng, first, n, version=0):
    return [{"id": "d%d" % i, "title": "v%d" % version,
             "text": " ".join(rng.choice(WORDS[:1 + rng.randrange(70)]) for _ in range(rng.randrange(60)))}
            for i in range(first, first + n)]


class Operation:
    """A command, and the documents of each commit that it may leave, the first being that before."""

    def __init__(self, name, args, states, inputs):
        self.name, self.args, self.states, self.inputs = name, args, states, inputs


class Test:
    def __init__(self, args):
        self.program, self.rng = os.path.abspath(args.program), random.Random(args.seed)
        self.room = tempfile.mkdtemp(prefix="gpuidx-faults-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK)
                                     else None)
        self.sums, self.counts = {}, {}

    def run(self, *args, **more):
        return subprocess.run([self.program, *args], capture_output=True, text=True, **more)

    def must(self, *args):
        done = self.run(*args)
        if done.returncode:
            raise Broken("%s: exit code %d: %s" % (" ".join(args), done.returncode, done.stderr))
        return done

    def path(self, name):
        return os.path.join(self.room, name)

    def write(self, name, docs):
        with open(self.path(name), "w") as f:
            f.writelines(json.dumps(d) + "\n" for d in docs)
        return self.path(name)

    def digest(self, index):
        """Of what the index exports, in the order of its documents."""
        out = self.path("export")
        self.must("export", "-q", index, "-f", "ds2i", "-o", out, "--force")
        h = hashlib.sha256()
        for end in FILES:
            with open(out + end, "rb") as f:
                h.update(f.read())
        return h.hexdigest()

    def digest_of(self, docs):
        key = hashlib.sha256(json.dumps(docs).encode()).hexdigest()
        if key not in self.sums:
            self.must("build", "-q", self.write("state.jsonl", docs), "-o", self.path("state.gx"), "--force")
            self.sums[key] = self.digest(self.path("state.gx"))
        return self.sums[key]

    def prepare(self):
        """A collection of three parts with some documents deleted, and the operations on it."""
        rng = self.rng
        docs = every = make_docs(rng, 0, 600)
        parts = []
        for i in range(3):
            parts.append(self.path("p%d.gx" % i))
            self.must("build", "-q", self.write("p.jsonl", docs[200 * i:200 * i + 200]), "-o", parts[-1])
        self.base = self.path("base")
        self.must("collect", "-q", *parts, "-o", self.base)
        gone = {d["id"] for d in rng.sample(docs, 40)}
        self.write_ids("ids0", gone)
        self.must("delete", "-q", self.base, "--ids", self.path("ids0"), "--merge=none")
        docs = [d for d in docs if d["id"] not in gone]
        more, new = make_docs(rng, 1000, 120), []
        adds = [docs + more[:n] for n in range(0, 121, 30)]
        for d in rng.sample(docs, 90):
            new += make_docs(rng, int(d["id"][1:]), 1, 1)
        updates = []
        for n in (0, 45, 90):
            ids = {d["id"] for d in new[:n]}
            updates.append([d for d in docs if d["id"] not in ids] + new[:n])
        victims = {d["id"] for d in rng.sample(docs, 150)}
        self.write_ids("ids", victims)
        a, u = self.write("add.jsonl", more), self.write("update.jsonl", new)
        self.operations = [
            Operation("add", ["add", "-q", "C", a, "--commit-every=30"], adds, [a]),
            Operation("delete", ["delete", "-q", "C", "--ids", self.path("ids")],
                      [docs, [d for d in docs if d["id"] not in victims]], []),
            Operation("update", ["update", "-q", "C", u, "--commit-every=45"], updates, [u]),
            Operation("merge", ["merge", "-q", "C", "--policy=all"], [docs], []),
            Operation("collect", ["collect", "-q", *parts, "-o", "C"], [None, every], []),
        ]

    def write_ids(self, name, ids):
        with open(self.path(name), "w") as f:
            f.writelines(i + "\n" for i in sorted(ids))

    def begin(self, op, folder):
        """What is there before the operation."""
        if op.states[0] is not None:
            shutil.copytree(self.base, folder)

    def next_command(self, op, folder):
        """The next one that changes the collection, or makes one beside it."""
        if op.states[0] is None:
            again = folder + ".again"
            done = self.run("collect", "-q", *op.args[2:-2], "-o", again)
            shutil.rmtree(again, ignore_errors=True)
            return done
        return self.run("merge", "-q", folder)

    def verify(self, op, where, folder):
        if op.states[0] is None and not os.path.exists(folder):
            return 0
        done = self.run("check", "-q", "--level=full", folder)
        if done.returncode:
            raise Broken("%s: the collection is not whole: %s" % (where, done.stderr or done.stdout))
        found = self.digest(folder)
        for i, docs in enumerate(op.states):
            if docs is not None and self.digest_of(docs) == found:
                return i
        raise Broken("%s: the collection is none of the operation's commits" % where)

    def no_orphans(self, where, folder):
        left = [n for n in os.listdir(os.path.dirname(folder)) if re.search(r"\.[0-9a-f]{16}\.tmp$", n)]
        if left:
            raise Broken("%s: left behind: %s" % (where, ", ".join(left)))
        if not os.path.exists(folder):
            return
        with open(os.path.join(folder, "MANIFEST")) as f:
            named = set(re.findall(r'"file": "([^"]+)"', f.read()))
        left = set(os.listdir(folder)) - named - {"MANIFEST", "LOCK"}
        if left:
            raise Broken("%s: left behind: %s" % (where, ", ".join(sorted(left))))

    def count(self, op, state):
        self.counts.setdefault(op.name, {}).setdefault(state, 0)
        self.counts[op.name][state] += 1

    def command(self, op, folder):
        return [folder if a == "C" else a for a in op.args]

    def kills(self, runs):
        folder = self.path("C")
        for op in self.operations:
            self.begin(op, folder)
            begin = time.monotonic()
            self.must(*self.command(op, folder))
            op.seconds = time.monotonic() - begin
            shutil.rmtree(folder)
        for i in range(runs):
            op = self.operations[i % len(self.operations)]
            after = self.rng.uniform(0, 1.1 * op.seconds)
            where = "run %d: %s, killed after %.4f s" % (i, op.name, after)
            self.begin(op, folder)
            p = subprocess.Popen([self.program, *self.command(op, folder)], stderr=subprocess.DEVNULL)
            time.sleep(after)
            p.send_signal(signal.SIGKILL)
            p.wait()
            state = self.verify(op, where, folder)
            done = self.next_command(op, folder)
            if done.returncode:
                raise Broken("%s: the next command: exit code %d: %s" % (where, done.returncode, done.stderr))
            self.no_orphans(where, folder)
            if self.verify(op, where + ", and merged", folder) != state:
                raise Broken("%s: the next command changed what was committed" % where)
            self.count(op, state)
            shutil.rmtree(folder, ignore_errors=True)

    CALLS = ("openat,read,pread64,write,pwrite64,rename,renameat,renameat2,link,linkat,unlink,unlinkat,"
             "fsync,mmap,mkdir,fcntl")

    def calls(self, runs):
        if not shutil.which("strace"):
            print("skipped: strace is not installed")
            sys.exit(77)
        folder, log = self.path("C"), self.path("calls")
        for op in self.operations:
            self.begin(op, folder)
            trace = ["strace", "-f", "-o", log, "-e", "trace=" + self.CALLS]
            done = subprocess.run([*trace, self.program, *self.command(op, folder)], capture_output=True, text=True)
            if done.returncode:
                print("skipped: strace does not work here: %s" % done.stderr[:200])
                sys.exit(77)
            shutil.rmtree(folder)
            with open(log) as f:
                lines = [line for line in f if re.match(r"\d+\s+\w+\(", line)]
            main = next(i for i, line in enumerate(lines) if "fcntl(0, F_GETFD)" in line) + 3 # before: the loader
            names = [re.match(r"\d+\s+(\w+)\(", line).group(1) for line in lines]
            faults = [(c, i + 1) for c in sorted(set(names))
                      for i in range(names[:main].count(c), names.count(c))]
            for call, n in self.rng.sample(faults, min(runs, len(faults))) if runs else faults:
                error = self.rng.choice(["EIO", "ENOSPC", "ENOMEM", "EMFILE"])
                where = "%s, %s %d fails with %s" % (op.name, call, n, error)
                self.begin(op, folder)
                done = subprocess.run([*trace, "-e", "inject=%s:error=%s:when=%d" % (call, error, n), self.program,
                                       *self.command(op, folder)], capture_output=True, text=True, timeout=600)
                if done.returncode not in range(8):
                    raise Broken("%s: exit code %d: %s" % (where, done.returncode, done.stderr))
                state = self.verify(op, where, folder)
                if done.returncode == 0 and state != len(op.states) - 1:
                    raise Broken("%s: it said that it was done" % where)
                after = self.next_command(op, folder)
                if after.returncode:
                    raise Broken("%s: the next command: exit code %d: %s" % (where, after.returncode, after.stderr))
                self.no_orphans(where, folder)
                self.count(op, state)
                shutil.rmtree(folder, ignore_errors=True)

    def space(self, runs):
        if os.geteuid() != 0:
            print("skipped: file systems can be mounted by root alone")
            sys.exit(77)
        need = sum(os.path.getsize(os.path.join(self.base, f)) for f in os.listdir(self.base))
        pages = range(need // 4096 + 4, 2 * need // 4096 + 60)
        if runs:
            pages = sorted(self.rng.sample(pages, min(runs, len(pages))))
        disk = self.path("disk")
        os.mkdir(disk)
        for op in self.operations:
            for n in pages:
                if op.states[0] is None: # which finds the file system empty
                    n -= need // 4096
                where = "%s on a file system of %d pages" % (op.name, n)
                if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%d" % (4096 * n), "tmpfs", disk]).returncode:
                    print("skipped: no file system can be mounted here")
                    sys.exit(77)
                try:
                    folder = os.path.join(disk, "C")
                    try:
                        self.begin(op, folder)
                    except (OSError, shutil.Error):
                        continue
                    done = self.run(*self.command(op, folder))
                    if done.returncode not in (0, 5) or (done.returncode and not done.stderr):
                        raise Broken("%s: exit code %d: %s" % (where, done.returncode, done.stderr))
                    state = self.verify(op, where, folder)
                    if done.returncode == 0 and state != len(op.states) - 1:
                        raise Broken("%s: it said that it was done" % where)
                    next = self.next_command(op, folder)
                    if next.returncode not in (0, 5):
                        raise Broken("%s: the next command: exit code %d: %s" % (where, next.returncode, next.stderr))
                    self.no_orphans(where, folder)
                    self.count(op, state)
                finally:
                    subprocess.run(["umount", disk], check=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("kind", choices=["kills", "space", "calls", "all"])
    p.add_argument("--program", required=True)
    p.add_argument("--runs", type=int)
    p.add_argument("--seed", type=int, default=int(time.time()))
    args = p.parse_args()
    print("seed %d" % args.seed, flush=True)
    test = Test(args)
    try:
        test.prepare()
        if args.kind in ("kills", "all"):
            test.kills(30 if args.runs is None else args.runs)
        if args.kind in ("calls", "all"):
            test.calls(args.runs or 0)
        if args.kind in ("space", "all"):
            test.space(args.runs or 0)
    except Broken as e:
        print("FAILED: %s; the files are in %s" % (e, test.room))
        sys.exit(1)
    for op, states in test.counts.items():
        print("%s: commits found afterwards: %s" % (op, ", ".join("%d: %d times" % s for s in sorted(states.items()))))
    shutil.rmtree(test.room)


main()
