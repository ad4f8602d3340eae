#!/usr/bin/env python3
"""Time the CPU engine against PISA (pip install pyterrier-pisa) on one core, query by query, in one run.

    tests/witness/pisa.py DOCS.tsv QUERIES.txt INDEX.gx --pisa DIR [--bench build/tests/bench_search] [--queries 1000] [--rounds 3]

DOCS.tsv holds an id, a tab, and text on each line; QUERIES.txt a query a line; INDEX.gx is an index of DOCS.tsv with
`--analyzer=simple`, so that both sides have nearly the same postings (PISA without stemmer and stop words). PISA's index is
made in DIR if it is not there. Of every query its fastest round counts, on both sides, which leaves out what other programs
took; PISA's time is the better of one call a query and calls of 20 queries, for the better of its two OR algorithms.
Run it under `taskset -c 1`. bench_search checks its answers first.
"""
import argparse
import importlib
import os
import re
import subprocess
import time

import numpy as np
from pyterrier_pisa import PisaIndex

ALGORITHMS = {"or": ["block_max_maxscore", "block_max_wand"], "and": ["ranked_and"]}


def documents(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, text = line.rstrip("\n").partition("\t")
            yield {"docno": name, "text": text}


class Pisa:
    def __init__(self, path):
        self.lib = importlib.import_module("pyterrier_pisa._pisathon")
        self.context = self.lib.RetrievalContext()
        self.lib.prepare_index(self.context, path, "block_simdbp", "bm25", "", bm25_k1=0.9, bm25_b=0.4)

    def seconds(self, queries, k, algorithm):
        n = len(queries) * k
        queries = list(enumerate(queries))
        begin = time.perf_counter()
        self.lib.retrieve(self.context, algorithm, queries, k=k, threads=1, query_weighted=0, pretokenised=False,
                          result_qidxs=np.zeros(n, np.int32), result_docnos=np.empty(n, object),
                          result_ranks=np.zeros(n, np.int32), result_scores=np.zeros(n, np.float32))
        return time.perf_counter() - begin


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("docs")
    args.add_argument("queries_file")
    args.add_argument("index")
    args.add_argument("--pisa", required=True)
    args.add_argument("--bench", default="build/tests/bench_search")
    args.add_argument("--queries", type=int, default=1000)
    args.add_argument("--rounds", type=int, default=3)
    args = args.parse_args()

    if not os.path.exists(args.pisa):
        PisaIndex(args.pisa, stemmer="none", stops="none", threads=1, batch_size=100000).index(documents(args.docs))
    pisa = Pisa(args.pisa)
    with open(args.queries_file, encoding="latin-1") as file:
        queries = [line.strip() for line in file][: args.queries]
    n = len(queries)

    for op in ("or", "and"):
        for k in (10, 1000):
            alone = {a: np.full(n, np.inf) for a in ALGORITHMS[op]}
            twenty = {a: np.full((n + 19) // 20, np.inf) for a in ALGORITHMS[op]}
            ours = []
            for _ in range(args.rounds):
                for a in ALGORITHMS[op]:
                    for i in range(n):
                        alone[a][i] = min(alone[a][i], pisa.seconds(queries[i : i + 1], k, a))
                    for i in range(0, n, 20):
                        twenty[a][i // 20] = min(twenty[a][i // 20], pisa.seconds(queries[i : i + 20], k, a))
                out = subprocess.run([args.bench, args.index, args.queries_file, op, str(k), str(n), "3"],
                                     capture_output=True, text=True, check=True).stdout
                ours.append([float(x) for x in re.search(r"mean ([\d.]+) p50 ([\d.]+) p95 ([\d.]+) p99 ([\d.]+)", out).groups()])
            best = min(ALGORITHMS[op], key=lambda a: min(alone[a].sum(), twenty[a].sum()))
            mean = 1e6 * min(alone[best].sum(), twenty[best].sum()) / n
            p50, p95, p99 = 1e6 * np.percentile(alone[best], [50, 95, 99])
            mine = np.min(ours, axis=0)
            print(f"{op.upper():3} top-{k:<4}  PISA {best}: mean {mean:.1f} p50 {p50:.1f} p95 {p95:.1f} p99 {p99:.1f} us;  "
                  f"gpuidx: mean {mine[0]:.2f} p50 {mine[1]:.2f} p95 {mine[2]:.1f} p99 {mine[3]:.1f} us;  "
                  f"{mean / mine[0]:.1f} times, p99 {p99 / mine[3]:.1f} times", flush=True)


if __name__ == "__main__":
    main()
