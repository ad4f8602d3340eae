#!/usr/bin/env python3
"""sweep.py: faults put into the program one after another, and what it does then.

    sweep.py memory | calls | kills | space  --program=GPUIDX [--preload=LIB] [--seconds=N]

    memory   the n-th allocation fails (LIB is libfail_malloc.so)
    calls    the n-th system call fails (needs strace)
    kills    SIGKILL, SIGTERM, SIGINT and SIGHUP at random moments
    space    a file system of 4 to 200 KB (needs root)

Without --seconds every n is tried; with it a sample, evenly spread, that takes about so long after the commands have
run once without a fault, and longer on a slow machine: it has 40 runs at least. The exit code is 77 (skipped) if what
is needed is missing, 1 if a rule was broken:

    memory   exit codes are 0 and 6, or 5 with "is in place"; at exit 0 the output is the one without a fault
    calls    exit codes are 0 to 7; at exit 0 the output is whole
    all      no file with a temporary name remains (after SIGKILL: after the next run), an output is
             the old one or the new one and passes `check`, "nothing was written" is true

Failures inside libarchive are counted apart: it aborts where an allocation of its own fails.
"""
import argparse, collections, json, os, random, re, shlex, shutil, signal, subprocess, sys, tempfile, time

LEAST = 40 # runs of a sample, however long they take
LONG = 600 # s: what takes longer has stopped for good
TEMPORARY = re.compile(r"\.gpuidx-[0-9a-f]{16}\.tmp$|\.tmp$|\.unordered$")


class Case:
    """A command line, run in a fresh folder that has the inputs.

    outputs   the files that it writes; a name that ends in .gx is an index
    timed     its standard output has times in it
    library   what it reads goes through libarchive, which aborts where an allocation of its own fails
    """

    def __init__(self, name, args, outputs=(), timed=False, library=False):
        self.name, self.args, self.outputs = name, shlex.split(args), outputs
        self.timed, self.library = timed, library


DS2I = ["out.docs", "out.freqs", "out.sizes", "out.terms", "out.documents"]

CASES = [
    Case("build", "build -q c.jsonl --store=text -o out.gx --force", ["out.gx"]),
    Case("build-order", "build -q c.jsonl --order=bp -o out.gx --force", ["out.gx"]),
    Case("build-xz", "build -q c.jsonl.xz -o out.gx --force", ["out.gx"], library=True),
    Case("build-attr", "build -q c.jsonl --members=id=id,text=text,title=title --attr year:int --attr tags:keywords "
         "--attr day:date --attr share:float --attr good:bool --fold=unicode --stemmer=german --stopwords=stop "
         "-o out.gx --force", ["out.gx"]),
    Case("build-tar", "build -q -f files --id=stem c.tar.gz -o out.gx --force", ["out.gx"], library=True),
    Case("build-warc", "build -q -f warc c.warc -o out.gx --force", ["out.gx"], library=True),
    Case("recode", "recode -q i.gx -o out.gx --codec=gpuvbyte128 --force", ["out.gx"]),
    Case("recode-auto", "recode -q a.gx -o out.gx --codec=auto --force", ["out.gx"]),
    Case("reorder", "reorder -q i.gx -o out.gx --force", ["out.gx"]),
    Case("reorder-attr", "reorder -q a.gx -o out.gx --order=random --force", ["out.gx"]),
    Case("import", "import -q i.ciff -o out.gx --force", ["out.gx"]),
    Case("import-ds2i", "import -q set -f ds2i -o out.gx --force", ["out.gx"]),
    Case("export", "export -q i.gx -o out.ciff --force", ["out.ciff"]),
    Case("export-ds2i", "export -q i.gx -o out -f ds2i --force", DS2I),
    Case("generate", "generate -q -o out -n 1000 --lists=64 --queries=5 -j 1 --force", DS2I + ["out.queries"]),
    Case("query", "query i.gx search -f tsv"),
    Case("query-human", "query a.gx 'search +index3 -word1' --syntax=boolean --explain", timed=True),
    Case("query-conditions", "query a.gx 'search +(index3 OR has:day) -word1 +year:>2000 word2' --syntax=boolean "
         "--filter has:year -f tsv"),
    Case("query-json", "query a.gx search -f jsonl --filter 'year:>2000 AND NOT tags:b AND share:[0.1 TO 50]' "
         "--facet share:bins=5", timed=True),
    Case("query-rm3", "query i.gx search -f trec --rm3=5,8,0.5"),
    Case("doc", "doc i.gx d3 '#0'"),
    Case("doc-json", "doc a.gx d3 '#0' -f json"),
    Case("term", "term i.gx search query1 -n 5"),
    Case("term-json", "term i.gx search query1 -n 5 -f json"),
    Case("analyze", "analyze -i i.gx 'The compressed indexes'"),
    Case("analyze-json", "analyze --stemmer=german --stopwords=stop --fold=unicode -f json 'Über die Indizes'"),
    Case("sweep", "sweep -q --engine=cpu i.gx log qrels -f tsv --k1=0.5,0.9 --b=0.4 -j 1"),
    Case("sweep-json", "sweep -q --engine=cpu i.gx log qrels -f tsv --k1=0.5,0.9 --b=0.4 -j 1 --json", timed=True),
    Case("eval", "eval qrels run run2"),
    Case("eval-json", "eval --json -q qrels run run2"),
    Case("info", "info i.gx"),
    Case("info-json", "info --json a.gx"),
    Case("check", "check a.gx"),
    Case("devices", "devices --json"),
    Case("codecs", "bench codecs --list --format=json"),
    Case("completion", "completion bash"),
    Case("help", "help query"),
    Case("replay", "replay -q --engine=cpu i.gx log -f tsv --run out.run --report out.json --force",
         ["out.run", "out.json"]),
    Case("replay-filter", "replay -q --engine=cpu a.gx log -f tsv --filter year:>2000 --rm3=5,8,0.5 -j 2 --run out.run "
         "--report out.json --force", ["out.run", "out.json"]),
]


class Sweep:
    def __init__(self, options):
        self.o = options
        self.program = os.path.abspath(options.program)
        options.preload = options.preload and os.path.abspath(options.preload)
        self.base = tempfile.mkdtemp(prefix="gpuidx-sweep-")
        self.inputs = os.path.join(self.base, "inputs")
        self.work = os.path.join(self.base, "work")
        self.counts = collections.Counter()
        self.deadline = None
        self.broken = []
        os.mkdir(self.inputs)
        os.mkdir(self.input("files"))
        self.make_inputs()

    def gpuidx(self, *args, cwd=None, **more):
        return subprocess.run([self.program, *args], cwd=cwd or self.work, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LONG, **more)

    def make_inputs(self):
        rng = random.Random(1)
        words = ["search", "index", "engine", "block", "list", "query", "term", "score", "rank", "word"]
        with open(self.input("c.jsonl"), "w") as f:
            for i in range(60):
                text = " ".join(rng.choice(words) + str(rng.randrange(9)) for _ in range(30)) + " search"
                f.write(json.dumps({"id": f"d{i}", "title": f"title {i}", "text": text, "year": 1990 + i,
                                    "tags": ["a", f"b{i % 7}"], "day": f"2019-05-{1 + i % 30:02}",
                                    "share": [i / 60, i, 0.5] if i % 3 else i / 60, "good": i % 2 == 0}) + "\n")
                with open(self.input("files") + f"/file{i % 9}.txt", "a") as one:
                    one.write(text + "\n")
        with open(self.input("log"), "w") as f:
            f.writelines(f"{i}\t{rng.choice(words)}{rng.randrange(9)} search\n" for i in range(20))
        with open(self.input("qrels"), "w") as f:
            f.writelines(f"{i} 0 d{d} {rng.randrange(3)}\n" for i in range(20) for d in rng.sample(range(60), 5))
        for name in "run", "run2":
            with open(self.input(name), "w") as f:
                f.writelines(f"{i} Q0 d{d} {r + 1} {9 - r} x\n" for i in range(20)
                             for r, d in enumerate(rng.sample(range(60), 5)))
        with open(self.input("stop"), "w") as f:
            f.write("word1\nword2\n")
        with open(self.input("c.warc"), "w", newline="") as f:
            for i in range(5):
                page = ("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
                        f"<title>t {i}</title><p>search engine {i}</p>")
                f.write(f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/{i}\r\n"
                        f"WARC-Date: 2019-05-01T00:00:00Z\r\nWARC-Record-ID: <urn:uuid:{i}>\r\n"
                        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(page)}\r\n\r\n"
                        f"{page}\r\n\r\n")
        attributes = "year:int,tags:keywords,day:date,share:float,good:bool"
        for args in ("build -q c.jsonl --store=text -o i.gx", "export -q i.gx -o i.ciff",
                     "export -q i.gx -f ds2i -o set",
                     f"build -q c.jsonl --store=text --attr {attributes} -o a.gx"):
            r = self.gpuidx(*args.split(), cwd=self.inputs)
            if r.returncode:
                sys.exit(f"{args}: {r.stderr.decode()}")
        subprocess.run(["xz", "-k", "c.jsonl"], cwd=self.inputs, check=True)
        subprocess.run(["tar", "czf", "c.tar.gz", "files"], cwd=self.inputs, check=True)

    def input(self, name):
        return os.path.join(self.inputs, name)

    def fresh(self, case, old=True):
        """A folder with the inputs, and with old outputs if they are to be replaced."""
        shutil.rmtree(self.work, ignore_errors=True)
        shutil.copytree(self.inputs, self.work, copy_function=os.link) # no case writes into its inputs
        for name in case.outputs if old else ():
            if name.endswith(".gx"):
                shutil.copy(self.input("i.gx"), os.path.join(self.work, name))
            else:
                with open(os.path.join(self.work, name), "w") as f:
                    f.write("old\n")

    def run(self, case, env=None, prefix=()):
        return subprocess.run([*prefix, self.program, *case.args], cwd=self.work, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LONG,
                              env={**os.environ, **(env or {})})

    def read(self, name):
        path = os.path.join(self.work, name)
        return open(path, "rb").read() if os.path.exists(path) else None

    def state(self, case, stdout):
        """What a run has said and written, without what differs between runs."""
        found = [b"" if case.outputs else shape_of_lines(stdout) if case.timed else stdout]
        for name in case.outputs:
            data = self.read(name)
            if name.endswith(".gx"):
                data = len(data)
            elif name.endswith(".json"):
                data = shape(json.loads(data))
            found.append(data)
        return found

    def is_unreadable_set(self, name):
        """Is it the first file of a set of ds2i, which is taken away while the others are replaced?"""
        return name == DS2I[0] and self.gpuidx("import", "-q", "-f", "ds2i", "out", "-o", "set.gx").returncode == 5

    def fail(self, case, what, r=None):
        words = r.stderr.decode(errors="replace").strip()[-200:] if r else ""
        self.broken.append(f"{case.name}: {what}: {words}")
        self.counts["rules broken"] += 1

    def look(self, case, what, r, allowed, want=None):
        """Judge a run that has ended; want: the state of one without a fault."""
        self.counts["runs"] += 1
        words = r.stderr.decode(errors="replace")
        self.counts[f"exit {r.returncode}"] += 1
        if case.library and (r.returncode < 0 or "libarchive" in words or "Unrecognized archive format" in words):
            self.counts["inside libarchive"] += 1
            return
        if r.returncode not in allowed and not (r.returncode == 5 and "is in place, but" in words):
            self.fail(case, f"{what}: exit {r.returncode}", r)
        left = [n for n in os.listdir(self.work) if TEMPORARY.search(n)]
        if left:
            self.fail(case, f"{what}: left {left}", r)
        if r.returncode == 0 and want is not None and self.state(case, r.stdout) != want:
            self.fail(case, f"{what}: exit 0 with another output", r)
        for name in case.outputs:
            data = self.read(name)
            if data is None and not self.is_unreadable_set(name):
                self.fail(case, f"{what}: {name} is gone", r)
            elif data is None:
                self.counts["sets that lack their first file, and are refused"] += 1
            elif name.endswith(".gx"):
                old = data == open(self.input("i.gx"), "rb").read()
                if r.returncode and not old and "is in place" not in words and "complete and in place" not in words:
                    self.fail(case, f"{what}: {name} was replaced, exit {r.returncode}", r)
                if not old and self.gpuidx("check", name).returncode:
                    self.fail(case, f"{what}: {name} is damaged", r)

    def is_enough(self):
        """Whether a sample has taken its time, which begins when it is first asked for."""
        if not self.o.seconds:
            return False
        if self.deadline is None:
            self.deadline = time.monotonic() + self.o.seconds
        return time.monotonic() > self.deadline and self.counts["runs"] >= LEAST

    def sample(self, counts):
        """Pairs (case, n), every n of every case, or those of them for which there is time."""
        pairs = [(case, n) for case, total in counts for n in range(1, total + 1)]
        self.counts["faults to choose from"] = len(pairs)
        if self.o.seconds:
            random.Random(self.o.seed).shuffle(pairs)
        for case, n in pairs:
            if self.is_enough():
                break
            yield case, n

    # ---- the sweeps ----

    def memory(self):
        counts, want = [], {}
        for case in CASES:
            self.fresh(case)
            r = self.run(case, {"LD_PRELOAD": self.o.preload, "FAIL_COUNT": os.path.join(self.base, "count")})
            if r.returncode:
                sys.exit(f"{case.name}: {r.stderr.decode()}")
            want[case.name] = self.state(case, r.stdout)
            counts.append((case, int(open(os.path.join(self.base, "count")).read())))
        for case, n in self.sample(counts):
            self.fresh(case)
            r = self.run(case, {"LD_PRELOAD": self.o.preload, "FAIL_AT": str(n)})
            self.look(case, f"allocation {n}", r, {0, 6}, want[case.name])

    CALLS = "openat,read,pread64,write,pwrite64,rename,renameat2,linkat,unlink,fsync,mmap,lseek,newfstatat,fcntl"

    def calls(self):
        if not shutil.which("strace"):
            skip("strace is not installed")
        counts = []
        for case in CASES:
            self.fresh(case)
            log = os.path.join(self.base, "calls")
            r = self.run(case, prefix=("strace", "-f", "-o", log, "-e", "trace=" + self.CALLS))
            if r.returncode:
                skip("strace does not work here: " + r.stderr.decode()[:200])
            lines = [l for l in open(log) if not re.search(r"\+\+\+|---|<unfinished|resumed", l)]
            names = [m.group(1) if (m := re.match(r"\d+\s+(\w+)\(", l)) else "" for l in lines]
            # Where main begins: what is before it loads libraries. A program that becomes another begins twice.
            main = max(i for i, l in enumerate(lines) if "fcntl(0, F_GETFD)" in l) + 3
            for call in set(names) - {""}: # strace counts each kind of call by itself
                before = names[:main].count(call)
                counts += [(case, call, before + i + 1) for i in range(names[main:].count(call))]
        pairs = counts
        self.counts["faults to choose from"] = len(pairs)
        if self.o.seconds:
            random.Random(self.o.seed).shuffle(pairs)
        for case, call, n in pairs:
            if self.is_enough():
                break
            self.fresh(case)
            error = random.choice(["EIO", "ENOSPC", "ENOMEM", "EMFILE"])
            r = self.run(case, prefix=("strace", "-f", "-o", "/dev/null", "-e", "trace=" + self.CALLS, "-e",
                                       f"inject={call}:error={error}:when={n}"))
            # A failing unlink may leave the name that it was to remove; the next run removes it.
            if [x for x in os.listdir(self.work) if TEMPORARY.search(x)]:
                self.counts["left by a failing unlink, swept by the next run"] += 1
                self.gpuidx("recode", "-q", "i.gx", "-o", "sweep.gx")
            self.look(case, f"{call} {n} {error}", r, set(range(8)))

    def kills(self):
        writers = [c for c in CASES if c.outputs]
        rounds, lasts = 0, {}
        for case in writers:
            self.fresh(case)
            begin = time.monotonic()
            self.run(case)
            lasts[case.name] = time.monotonic() - begin
        while rounds < 3000 if not self.o.seconds else not self.is_enough():
            rounds += 1
            case = random.choice(writers)
            self.fresh(case)
            p = subprocess.Popen([self.program, *case.args], cwd=self.work, stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            time.sleep(random.uniform(0, 1.1 * lasts[case.name]))
            sig = random.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
            p.send_signal(sig)
            out, err = p.communicate(timeout=LONG)
            r = subprocess.CompletedProcess(case.args, p.returncode, out, err)
            if sig == signal.SIGKILL and [x for x in os.listdir(self.work) if TEMPORARY.search(x)]:
                self.counts["left by SIGKILL, swept by the next run"] += 1
                self.gpuidx("recode", "-q", "i.gx", "-o", "sweep.gx")
            self.counts["runs"] += 1
            self.counts[f"{sig.name}: exit {r.returncode}"] += 1
            left = [x for x in os.listdir(self.work) if TEMPORARY.search(x)]
            if left:
                self.fail(case, f"{sig.name}: left {left}", r)
            for name in case.outputs:
                data = self.read(name)
                if data is None and not self.is_unreadable_set(name):
                    self.fail(case, f"{sig.name}: {name} is gone", r)
                elif data is None:
                    self.counts["sets that lack their first file, and are refused"] += 1
                elif name.endswith(".gx"):
                    old = data == open(self.input("i.gx"), "rb").read()
                    if not old and b"nothing was written" in err:
                        self.fail(case, f"{sig.name}: {name} was replaced", r)
                    if self.gpuidx("check", name).returncode:
                        self.fail(case, f"{sig.name}: {name} is damaged", r)

    def space(self):
        if os.geteuid():
            skip("only root mounts a small file system")
        mount = os.path.join(self.base, "small")
        os.mkdir(mount)
        sizes = list(range(4, 204, 4))
        if self.o.seconds:
            random.Random(self.o.seed).shuffle(sizes)
        for size in sizes:
            if self.is_enough():
                break
            for case in (c for c in CASES if c.outputs):
                if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", mount],
                                  stderr=subprocess.DEVNULL).returncode:
                    skip("mounting is not allowed here")
                try:
                    self.fresh(case, old=False)
                    args = [os.path.join(mount, a) if a == "out" or a in case.outputs else a for a in case.args]
                    r = self.gpuidx(*args)
                    self.counts["runs"] += 1
                    self.counts[f"exit {r.returncode}"] += 1
                    if r.returncode not in (0, 5):
                        self.fail(case, f"{size} KB: exit {r.returncode}", r)
                    found = os.listdir(mount)
                    if r.returncode == 0 and set(found) != set(case.outputs):
                        self.fail(case, f"{size} KB: {found}", r)
                    if r.returncode and [x for x in found if x.endswith(".gx") or TEMPORARY.search(x)]:
                        self.fail(case, f"{size} KB: left {found}", r)
                    for name in found:
                        if name.endswith(".gx") and self.gpuidx("check", os.path.join(mount, name)).returncode:
                            self.fail(case, f"{size} KB: {name} is damaged", r)
                finally:
                    subprocess.run(["umount", "-l", mount], check=True)


def shape(value):
    """The keys of a report, whatever its numbers."""
    if isinstance(value, dict):
        return {k: shape(v) for k, v in value.items()}
    return [shape(v) for v in value] if isinstance(value, list) else None


def shape_of_lines(text):
    """What stays of an output with times in it: the keys of its JSON, or the number of its lines."""
    try:
        return [shape(json.loads(text))]
    except ValueError:
        pass
    lines = text.splitlines()
    return [shape(json.loads(line)) if line.startswith(b"{") else None for line in lines]


def skip(why):
    print("skipped:", why)
    sys.exit(77)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("sweep", choices=["memory", "calls", "kills", "space"])
    p.add_argument("--program", required=True)
    p.add_argument("--preload", help="libfail_malloc.so, for memory")
    p.add_argument("--seconds", type=float, default=0, help="sample for so long; 0: everything")
    p.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    o = p.parse_args()
    random.seed(o.seed)
    signal.signal(signal.SIGINT, signal.default_int_handler) # a job in the background ignores them, and so would
    signal.signal(signal.SIGHUP, signal.SIG_DFL)             # the programs that it starts
    s = Sweep(o)
    try:
        getattr(s, o.sweep)()
    finally:
        shutil.rmtree(s.base, ignore_errors=True)
    print(f"seed {o.seed}")
    for what, n in sorted(s.counts.items()):
        print(f"{n:8,}  {what}")
    print("\n".join(s.broken[:40]))
    if not s.counts["runs"]:
        sys.exit("nothing was run")
    sys.exit(1 if s.broken else 0)


main()
