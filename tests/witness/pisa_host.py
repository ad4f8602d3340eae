#!/usr/bin/env python3
"""Queries a second of a whole host: the CPU engine on one core and on all, the GPU where there is one, and PISA's best
algorithm on one core and on all, on the identical postings, in one run.

    tests/witness/pisa_host.py DIR [--documents N] [--density X]     a collection that `gpuidx generate` makes in DIR
    tests/witness/pisa_host.py DIR --index INDEX.gx --queries LOG    an index of one's own, by `gpuidx export`

All read the queries as text: gpuidx by `replay`, for k up to 100 to a written run, PISA by the extension in pip's
pyterrier-pisa (which needs numpy, and tbb 2020 for libtbb.so.2) from a list of strings to arrays. Both score BM25
with k1 0.9 and b 0.4; the best documents of both are compared first, and it ends with 1 unless 99 % of these queries
agree. All answer the log's first --first queries, gpuidx again and again for about --seconds, PISA --runs times, of
which the median counts; on one core only the first --alone of them. `--kernel build/tests/bench_query` adds what the
GPU does without text, on a generated collection. With --device-memory, less than the index, the GPU reads over PCIe
what it has no room for. With --wheel, a folder into which the wheels were unzipped, nothing need be installed.
"""
import argparse
import contextlib
import ctypes
import glob
import importlib.util
import json
import os
import re
import subprocess
import sys
import time

import numpy as np

ALGORITHMS = {"or": ["block_max_wand", "block_max_maxscore", "maxscore", "wand"],
              "and": ["block_max_ranked_and", "ranked_and"]}
began = time.perf_counter()


def say(text):
    print(f"{time.perf_counter() - began:6.1f} s  {text}", flush=True)


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr}")
    return done.stdout


@contextlib.contextmanager
def silence():
    """What PISA prints while it makes an index is kept from the report."""
    sys.stdout.flush()
    kept = [os.dup(fd) for fd in (1, 2)]
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for fd in (1, 2):
        os.dup2(nowhere, fd)
    try:
        yield
    finally:
        for fd, was in zip((1, 2), kept):
            os.dup2(was, fd)


class Pisa:
    def __init__(self, wheel, folder):
        if wheel:
            for library in glob.glob(os.path.join(wheel, "**", "libtbb.so.2"), recursive=True):
                ctypes.CDLL(library, mode=ctypes.RTLD_GLOBAL)
            found = glob.glob(os.path.join(wheel, "**", "_pisathon*.so"), recursive=True)[0]
            spec = importlib.util.spec_from_file_location("_pisathon", found)
            self.lib = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(self.lib)
        else:
            self.lib = importlib.import_module("pyterrier_pisa._pisathon")
        with silence():
            self.open(folder)

    def open(self, folder):
        for names, lexicon in (("fwd.terms", "fwd.termlex"), ("fwd.documents", "fwd.doclex")):
            if not os.path.exists(os.path.join(folder, lexicon)):
                self.lib.build_binlex(os.path.join(folder, names), os.path.join(folder, lexicon))
        self.context = self.lib.RetrievalContext()
        self.lib.prepare_index(self.context, folder, "block_simdbp", "bm25", "", bm25_k1=0.9, bm25_b=0.4)

    def answer(self, queries, k, algorithm, threads):
        """Seconds, and each query's names of documents and scores."""
        room = len(queries) * k
        of, names = np.zeros(room, np.int32), np.empty(room, object)
        ranks, scores = np.zeros(room, np.int32), np.zeros(room, np.float32)
        queries = list(enumerate(queries))
        start = time.perf_counter()
        n = self.lib.retrieve(self.context, algorithm, queries, k=k, threads=threads, query_weighted=0,
                              pretokenised=False, result_qidxs=of, result_docnos=names, result_ranks=ranks,
                              result_scores=scores)
        seconds = time.perf_counter() - start
        found = [[] for _ in queries]
        for i in range(n):
            found[of[i]].append((names[i], float(scores[i])))
        return seconds, found

    def rate(self, queries, k, algorithm, threads, runs):
        self.answer(queries[:64], k, algorithm, threads)
        return len(queries) / float(np.median([self.answer(queries, k, algorithm, threads)[0] for _ in range(runs)]))


def link(base, folder):
    os.makedirs(folder, exist_ok=True)
    for suffix, name in ((".docs", "inv.docs"), (".freqs", "inv.freqs"), (".sizes", "inv.sizes"),
                         (".terms", "fwd.terms"), (".documents", "fwd.documents")):
        if not os.path.lexists(os.path.join(folder, name)):
            os.symlink(os.path.abspath(base + suffix), os.path.join(folder, name))


def prepare(args):
    """The collection's files, our index, and the log."""
    base = os.path.join(args.dir, "collection")
    os.makedirs(args.dir, exist_ok=True)
    if args.index:
        if not os.path.exists(base + ".docs"):
            run(args.gpuidx, "export", args.index, "-o", base)
    else:
        args.index, args.queries = base + ".gx", base + ".queries"
        if not os.path.exists(args.queries):
            say(run(args.gpuidx, "generate", "-o", base, f"--documents={args.documents}",
                    f"--density={args.density}").strip() or "generated")
        if not os.path.exists(args.index):
            run(args.gpuidx, "import", base, "-o", args.index)
            say("imported")
    link(base, os.path.join(args.dir, "pisa"))
    with open(args.queries, encoding="latin-1") as file:
        return [line.strip() for line in file][: args.first]


def replay(args, queries, op, k, engine, threads, *more):
    """Queries a second, read as text, and the report."""
    log = os.path.join(args.dir, "log")
    with open(log, "w", encoding="utf-8") as file:
        file.writelines(q + "\n" for q in queries)
    if k <= 100:
        more += (f"--run={args.dir}/run", "--force")
    if args.device_memory and engine in ("gpu", "hybrid"):
        more += (f"--device-memory={args.device_memory}",)
    if engine == "hybrid":
        more += (f"--cpu-threads={threads}", "--gpu-threads=4")
        threads = 2  # which plan
    if engine.endswith("+pairs"):
        engine = engine[: -len("+pairs")]
        more += (f"--pair-thresholds={args.pair_thresholds}",)
    out = run(args.gpuidx, "replay", "-q", args.index, log, "--format=lines", f"--engine={engine}", "-j", threads,
              f"--op={op}", "-k", k, "--scorer=bm25:pisa", "--check=structure", "--report=-", *more)
    return json.loads(out)["queries_per_second"]


def ours(args, queries, op, k, engine, threads):
    """The same for the queries again and again, for about args.seconds."""
    rate = replay(args, queries, op, k, engine, threads, f"--warmup={len(queries)}")
    times = max(1, min(1000000, int(args.seconds * rate)) // len(queries))
    return replay(args, queries * times, op, k, engine, threads, f"--warmup={len(queries)}")


def compare(args, pisa, queries):
    """How many of the first queries' best ten have the scores that PISA gives them, and are the same documents (but for
    ties)."""
    some = queries[:200]
    replay(args, some, "or", 10, "cpu", args.threads)
    mine = [[] for _ in some]
    with open(os.path.join(args.dir, "run"), encoding="utf-8") as file:
        for line in file:
            query, _, name, _, score, _ = line.split()
            mine[int(query) - 1].append((name, float(score)))
    good = 0
    for a, b in zip(mine, pisa.answer(some, 10, "maxscore", args.threads)[1]):
        b.sort(key=lambda x: -x[1])
        same = len(a) == len(b) and all(abs(x[1] - y[1]) < 1e-3 * max(1, y[1]) for x, y in zip(a, b))
        last = b[-1][1] if b else 0
        good += same and {n for n, s in a if s > last * 1.001} <= {n for n, _ in b}
    say(f"{good} of {len(some)} queries have the same ten best documents and scores in both")
    if good < 0.99 * len(some):
        sys.exit("fewer than 99 % of the compared queries agree: nothing is to be said of speeds")
    return good


def kernels(args):
    if not args.kernel:
        return
    out = run(args.kernel, f"--docs={args.documents}", "--only=or,and", "--check=64", "--cpu-check=8",
              f"--sessions={args.sessions}")
    for line in out.splitlines():
        say("GPU, plans to hits in memory: " + line)


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("dir")
    args.add_argument("--index")
    args.add_argument("--queries", metavar="LOG")
    args.add_argument("--documents", type=int, default=25205179)
    args.add_argument("--density", type=float, default=1.0)
    args.add_argument("--first", type=int, default=1024, metavar="N", help="queries of the log to run")
    args.add_argument("--alone", type=int, default=128, metavar="N", help="queries to run on one core")
    args.add_argument("--operations", default="or10,and10,or1000,and1000")
    args.add_argument("--algorithms", default=",".join(sum(ALGORITHMS.values(), [])), help="PISA's")
    args.add_argument("--seconds", type=float, default=2.0)
    args.add_argument("--runs", type=int, default=3)
    args.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    args.add_argument("--gpu-threads", metavar="N,..",
                      help="threads that give the GPU its queries; without it, half of --threads and all")
    args.add_argument("--device-memory", metavar="SIZE",
                      help="of the GPU; with it both engines together are measured, too")
    args.add_argument("--gpuidx", default="build/tools/gpuidx")
    args.add_argument("--pair-thresholds", type=int, default=0, metavar="N",
                      help="also run ORs on the GPU with thresholds of pairs of the N most frequent terms")
    args.add_argument("--kernel", metavar="BENCH_QUERY")
    args.add_argument("--sessions", type=int, default=4, metavar="N", help="of the GPU at once, without text")
    args.add_argument("--wheel", metavar="DIR")
    args.add_argument("--limit", type=float, default=1e9, metavar="S",
                      help="begin no further measurement of PISA after S seconds")
    args.add_argument("--json", metavar="FILE")
    args = args.parse_args()

    operations = [(o.rstrip("01"), int(o.lstrip("andor"))) for o in args.operations.split(",")]
    queries = prepare(args)
    say(f"{args.index}: {len(queries)} queries")
    gpu = subprocess.run([args.gpuidx, "devices", "--require"], capture_output=True).returncode == 0
    on_gpu = [(args.threads + 1) // 2, args.threads]
    if args.gpu_threads:
        on_gpu = [int(n) for n in args.gpu_threads.split(",")]
    sides = [("cpu", 1), ("cpu", args.threads)] + [("gpu", n) for n in on_gpu if gpu]
    if gpu and args.device_memory:
        sides += [("hybrid", args.threads)]
    rows = {}
    for op, k in operations:
        pairs = [("gpu+pairs", n) for n in on_gpu if gpu and args.pair_thresholds and op == "or"]
        for engine, threads in sides + pairs:
            own = queries[: args.alone] if (engine, threads) == ("cpu", 1) else queries
            rows[op, k, engine, threads] = ours(args, own, op, k, engine, threads)
            say(f"{op.upper()} top-{k}, gpuidx on the {engine.upper()}, {threads} threads: "
                f"{rows[op, k, engine, threads]:.0f} queries/s")
    kernels(args)

    pisa = Pisa(args.wheel, os.path.join(args.dir, "pisa"))
    say("PISA's index is there")
    good = compare(args, pisa, queries)
    for op, k in operations:
        for threads, some in ((args.threads, queries), (1, queries[: args.alone])):
            best = ("none", 0)
            for algorithm in (a for a in ALGORITHMS[op] if a in args.algorithms.split(",")):
                if time.perf_counter() - began > args.limit:
                    say("time is up")
                    break
                rate = pisa.rate(some, k, algorithm, threads, args.runs)
                best = (algorithm, rate) if rate > best[1] else best
                say(f"{op.upper()} top-{k}, PISA {algorithm}, {threads} threads: {rate:.0f} queries/s")
            rows[op, k, "pisa", threads] = best[1]
            for (o, n, engine, t), rate in list(rows.items()):
                same_side = t == threads or (engine.startswith("gpu") and threads == args.threads)
                if (o, n) == (op, k) and best[1] and engine != "pisa" and same_side:
                    say(f"    gpuidx {engine.upper()}, {t} threads: {rate / best[1]:.1f} times PISA's {best[0]} "
                        f"on {threads}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"threads": args.threads, "same": good, "rates": [[*key, rate] for key, rate in rows.items()]},
                      file, indent=1)


if __name__ == "__main__":
    main()
