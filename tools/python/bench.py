#!/usr/bin/env python3
"""How fast the package is beside the program.

    taskset -c 0 tools/python/bench.py INDEX LOG [--corpus CORPUS.jsonl] [--engine cpu] [--threads N] [--processor-time]

INDEX is an index, LOG a file of queries (a line each, or id TAB query). The table has queries per second from a list of
strings against `gpuidx replay` with the same batch; the p50 of queries one at a time, the first 5,000 of LOG and one
word that no document has; and, with --corpus, the time to build an index from generators of dicts against `gpuidx
build`: dicts that json.loads, and orjson where it is installed, makes of the lines, and dicts that are there already.
Each figure is the best of five runs, which take turns. --processor-time counts the processor's time instead of the
clock's, for machines that other work shares.
"""
import argparse
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

sys.path.pop(0)  # the package that is installed, not the sources beside this file
import gpuidx  # noqa: E402

RUNS = 5


def program(*args):
    """Processor time of the program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "gpuidx", *args], check=True, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def timed(run):
    """(seconds, seconds of processor time) of this process."""
    begin, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - begin, time.process_time() - cpu


def alone(index, queries):
    """The p50 of queries one at a time, in us."""
    times = []
    for query in queries:
        begin = time.perf_counter_ns()
        index.search(query)
        times.append(time.perf_counter_ns() - begin)
    return sorted(times)[len(times) // 2] / 1e3


class Replay:
    def __init__(self, args, log, folder):
        self.args, self.log, self.report = args, log, os.path.join(folder, "report.json")

    def __call__(self, batch, *more):
        program("replay", "-q", "--engine=" + self.args.engine, "--batch=%d" % batch, "-f", "tsv", "--warmup=5000",
                self.args.index, self.log, "--report=" + self.report, "--force", *more)
        with open(self.report) as f:
            return json.load(f)


def search(args, queries, log, folder):
    replay, cpu = Replay(args, log, folder), args.processor_time
    with gpuidx.open(args.index, engine=args.engine) as index:
        print("%s, %d queries, %d threads" % (index.engine_name(), len(queries), args.threads))
        print("| what | Python | the program | ratio |\n| --- | --- | --- | --- |")
        index.search(queries, threads=args.threads)
        ours, theirs = [], []
        for _ in range(RUNS):
            ours.append(len(queries) / timed(lambda: index.search(queries, 10, threads=args.threads))[cpu])
            report = replay(1024, "--threads=%d" % args.threads)
            theirs.append(len(queries) / report["cpu_seconds" if cpu else "seconds"])
        print("| queries per second, top 10, batches of 1,024 | %.0f | %.0f | %.2f |" % (
            max(ours), max(theirs), max(ours) / max(theirs)), flush=True)
        with open(log, "w", encoding="utf-8") as f:
            f.writelines("%d\t%s\n" % (i, q) for i, q in enumerate(queries[:5000], 1))
        ours, theirs = [], []
        for _ in range(RUNS):
            ours.append(alone(index, queries[:5000]))
            theirs.append(replay(1)["latency_us"]["p50"])
        print("| one query, us: p50 | %.1f | %.1f | |" % (min(ours), min(theirs)))
        print("| a query without results, us: p50 | %.1f | | |" % min(
            alone(index, ["unheardofword"] * 5000) for _ in range(RUNS)))


def build(args, folder):
    def read(loads):
        with open(args.corpus, "rb" if loads is not json.loads else "r") as f:
            for line in f:
                yield loads(line)

    ways = {"dicts of json.loads": lambda: read(json.loads)}
    try:
        import orjson
        ways["dicts of orjson.loads"] = lambda: read(orjson.loads)
    except ImportError:
        pass
    there = list(read(json.loads))
    ways["dicts that are there"] = lambda: (d for d in there)
    cpu, theirs, ours = args.processor_time, [], {way: [] for way in ways}
    mine, other = os.path.join(folder, "p.gx"), os.path.join(folder, "c.gx")
    for _ in range(RUNS):
        begin = time.perf_counter()
        seconds = program("build", "-q", args.corpus, "-o", other, "--force", "--threads=%d" % args.threads)
        theirs.append(seconds if cpu else time.perf_counter() - begin)
        for way, documents in ways.items():
            ours[way].append(timed(
                lambda: gpuidx.build(mine, documents(), force=True, threads=args.threads).close())[cpu])
    for way in ways:
        print("| build from %s, seconds | %.2f | %.2f | %.2f |" % (
            way, min(ours[way]), min(theirs), min(theirs) / min(ours[way])), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index")
    parser.add_argument("log")
    parser.add_argument("--corpus")
    parser.add_argument("--engine", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--processor-time", action="store_true")
    args = parser.parse_args()
    with open(args.log, encoding="utf-8", errors="replace") as f:
        queries = [re.sub(r"^\S+?[\t:]", "", line).strip() for line in f]
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log.tsv")
        with open(log, "w", encoding="utf-8") as f:
            f.writelines("%d\t%s\n" % (i, q) for i, q in enumerate(queries, 1))
        search(args, queries, log, folder)
        if args.corpus:
            build(args, folder)


main()
