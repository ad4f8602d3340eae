#!/usr/bin/env python3
"""How fast the package is beside the program, on one core.

    taskset -c 0 tools/python/bench.py INDEX LOG [--corpus CORPUS.jsonl]

INDEX is an index, LOG a file of queries (a line each, or id TAB query). The table has queries per second from a list of
strings against `gpuidx replay` with the same batch, the time of one short query, and, with --corpus, the time to
build an index from a generator of dicts against `gpuidx build`. Each figure is the best of five runs.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.pop(0)  # the package that is installed, not the sources beside this file
import gpuidx  # noqa: E402

RUNS = 5


def program(*args):
    return subprocess.run([sys.executable, "-m", "gpuidx", *args], check=True, capture_output=True, text=True)


def best(run):
    times = []
    for _ in range(RUNS):
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return min(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index")
    parser.add_argument("log")
    parser.add_argument("--corpus")
    parser.add_argument("--engine", default="cpu")
    args = parser.parse_args()
    with open(args.log, encoding="utf-8", errors="replace") as f:
        queries = [re.sub(r"^\S+?[\t:]", "", line).strip() for line in f]
    with tempfile.TemporaryDirectory() as work, gpuidx.open(args.index, engine=args.engine) as index:
        log = os.path.join(work, "log.tsv")
        with open(log, "w", encoding="utf-8") as f:
            f.writelines("%d\t%s\n" % (i, q) for i, q in enumerate(queries, 1))
        index.search(queries)
        in_python = len(queries) / best(lambda: index.search(queries, 10))
        reports = []
        for _ in range(RUNS):
            program("replay", "-q", "--engine=" + args.engine, "--batch=1024", "-f", "tsv", "--warmup=5000", args.index,
                    log, "--report=" + os.path.join(work, "r.json"), "--force")
            with open(os.path.join(work, "r.json")) as f:
                reports.append(json.load(f)["queries_per_second"])
        print("| what | Python | the program | ratio |\n| --- | --- | --- | --- |")
        print("| queries per second, top 10, batches of 1,024 | %.0f | %.0f | %.2f |" % (
            in_python, max(reports), in_python / max(reports)))
        times = sorted(best_of_one(index) for _ in range(5000))
        print("| a query without results, us: p50 | %.1f | | |" % (times[2500] * 1e6))
        if args.corpus:
            build = best(lambda: gpuidx.build(os.path.join(work, "p.gx"), read(args.corpus), force=True).close())
            base = best(lambda: program("build", "-q", args.corpus, "-o", os.path.join(work, "c.gx"), "--force"))
            print("| build, seconds | %.2f | %.2f | %.2f |" % (build, base, base / build))


def best_of_one(index):
    begin = time.perf_counter()
    index.search("unheardofword")
    return time.perf_counter() - begin


def read(path):
    with open(path, encoding="utf-8") as f:
        for line in f:
            yield json.loads(line)


main()
