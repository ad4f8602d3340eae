#!/usr/bin/env python3
"""Time the CPU engine against BMP and Seismic on learned sparse weights, on one core, in one run.

    tests/witness/sparse.py --index INDEX.gx --queries QUERIES.txt --dir DIR [--limit N] [--rounds N] [--peers LIST]

INDEX.gx holds impacts (`gpuidx import --impacts`), its documents reordered (`gpuidx reorder`): all sides have the same
documents in the same order. QUERIES.txt has a query a line, a term repeated as often as it weighs. What the others
index is made in DIR if it is not there; BMP needs some 3 KB of memory a document for that.

Processor time, of every query its fastest round; a call from Python is part of a peer's time, some tens of
microseconds. Recall is the share of our exact answers' documents that a peer finds; a document with the score of the
last one counts as found. Run it under `taskset -c 1`. Needs numpy, and pip's bmp and pyseismic-lsr for the peers named.
"""
import argparse
import collections
import os
import re
import subprocess
import time

import numpy as np


def vectors(stem):
    """Of each document its terms and weights, from ds2i's files."""
    docs, freqs = (np.fromfile(stem + end, dtype="<u4") for end in (".docs", ".freqs"))
    terms = open(stem + ".terms", encoding="utf-8").read().split("\n")[:-1]
    lists, at, begin = [], 2, 0
    while at < len(docs):
        n = int(docs[at])
        lists.append((docs[at + 1:at + 1 + n], freqs[begin + 1:begin + 1 + n]))
        at, begin = at + 1 + n, begin + 1 + n
    docids = np.concatenate([d for d, _ in lists])
    weights = np.concatenate([w for _, w in lists]).astype(np.float32)
    numbers = np.repeat(np.arange(len(lists)), [len(d) for d, _ in lists])
    order = np.argsort(docids, kind="stable")
    ends = np.cumsum(np.bincount(docids, minlength=int(docs[1])))
    return np.array(terms), numbers[order], weights[order], ends


def ours(a, k):
    """Times, and of each query the documents with their scores."""
    out = subprocess.run([a.bench, a.index, a.queries, "or", str(k), str(a.limit), str(a.rounds)], check=True,
                         capture_output=True, text=True).stdout
    mean, p50, p99 = re.search(r"search mean ([\d.]+) p50 ([\d.]+) .*p99 ([\d.]+)", out).groups()
    assert " 0 wrong" in out, out
    head, run = os.path.join(a.dir, "queries.txt"), os.path.join(a.dir, "ours.run")
    with open(a.queries, encoding="utf-8") as lines, open(head, "w", encoding="utf-8") as few:
        few.writelines(line for line, _ in zip(lines, range(a.limit)))
    subprocess.run([a.gpuidx, "replay", "-q", a.index, head, "--format=lines", "--engine=cpu", "-k", str(k), "--run",
                    run, "--force"], check=True, stdout=subprocess.DEVNULL)
    answers = collections.defaultdict(list)
    for line in open(run, encoding="utf-8"):
        query, _, document, _, score, _ = line.split()
        answers[query].append((document, float(score)))
    return (float(mean), float(p50), float(p99)), list(answers.values())


def timed(search, queries, rounds):
    best, found = [float("inf")] * len(queries), [None] * len(queries)
    for _ in range(rounds):
        for i, query in enumerate(queries):
            began = time.thread_time()
            found[i] = search(query)
            best[i] = min(best[i], time.thread_time() - began)
    us = np.sort(np.array(best)) * 1e6
    return (us.mean(), us[len(us) // 2], us[min(len(us) - 1, len(us) * 99 // 100)]), found


def recall(answers, found, weight):
    """weight(i, document): the document's exact score for query i, or None where it is not known."""
    total = hit = 0
    for i, (want, got) in enumerate(zip(answers, found)):
        known, least = dict(want), want[-1][1]
        total += len(want)
        hit += min(len(want), sum(d in known or weight(i, d) == least for d in got))
    return hit / total


def show(name, k, times, found):
    print("| %s | %d | %.0f | %.0f | %.0f | %.4f |" % (name, k, *times, found), flush=True)


def bmp(a, k, queries, answers):
    from bmp import Searcher, ciff2bmp
    ciff = os.path.join(a.dir, "index.ciff")
    for size in 32, 8:
        path = os.path.join(a.dir, "bmp%d" % size)
        if not os.path.exists(path):
            if not os.path.exists(ciff):
                subprocess.run([a.gpuidx, "export", "-q", a.index, "-o", ciff], check=True)
            ciff2bmp(ciff_file=ciff, output=path, bsize=size, compress_range=size == 8)
        searcher = Searcher(path)
        for alpha in a.alpha:
            times, found = timed(lambda q: searcher.search(q, k=k, alpha=alpha, beta=1.0), queries, a.rounds)
            scores = [dict(zip(*f)) for f in found]
            # by its own scores a document that ties with the last answer counts
            least = [sorted(s.values())[-min(k, len(s))] if s else None for s in scores]
            got = recall(answers, [f[0] for f in found],
                         lambda i, d: answers[i][-1][1] if scores[i][d] == least[i] and alpha == 1 else None)
            show("BMP, b = %d, alpha %g" % (size, alpha), k, times, got)


def seismic(a, k, queries, answers):
    from seismic import SeismicDataset, SeismicIndex, get_seismic_string
    path = os.path.join(a.dir, "seismic")
    text = get_seismic_string()
    if not os.path.exists(path + ".index.seismic"):
        stem = os.path.join(a.dir, "ds2i")
        subprocess.run([a.gpuidx, "export", "-q", "-f", "ds2i", "--force", a.index, "-o", stem], check=True)
        terms, numbers, weights, ends = vectors(stem)
        names = open(stem + ".documents", encoding="utf-8").read().split("\n")
        data, begin, tokens = SeismicDataset(), 0, terms.astype(text)
        for docid, end in enumerate(ends):
            data.add_document(names[docid], tokens[numbers[begin:end]], weights[begin:end])
            begin = end
        index = SeismicIndex.build_from_dataset(data, n_postings=3500, num_threads=1)
        index.save(path)
    else:
        index = SeismicIndex.load(path + ".index.seismic")
    ready = [("", np.array(list(q), dtype=text), np.array(list(q.values()), dtype=np.float32)) for q in queries]
    for cut, heap in ((5, 0.9), (10, 0.9), (10, 0.7), (20, 0.7), (45, 0.5)):
        times, found = timed(lambda q: index.search(*q, k=k, query_cut=cut, heap_factor=heap), ready, a.rounds)
        got = recall(answers, [[d for _, _, d in f] for f in found], lambda i, d: None)
        show("Seismic, query_cut %d, heap_factor %g" % (cut, heap), k, times, got)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--gpuidx", default="build/tools/gpuidx")
    parser.add_argument("--bench", default="build/tests/bench_search")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default="bmp,seismic")
    parser.add_argument("--k", type=int, nargs="+", default=[10, 1000])
    parser.add_argument("--alpha", type=float, nargs="+", default=[1.0])
    a = parser.parse_args()
    os.makedirs(a.dir, exist_ok=True)
    with open(a.queries, encoding="utf-8") as lines:
        queries = [dict(collections.Counter(line.split())) for line, _ in zip(lines, range(a.limit))]
    queries = [{t: float(w) for t, w in q.items()} for q in queries]
    print("| search | k | mean, us | p50, us | p99, us | recall |\n| --- | --- | --- | --- | --- | --- |")
    for k in a.k:
        times, answers = ours(a, k)
        show("gpuidx, exact", k, times, 1)
        for peer in a.peers.split(","):
            {"bmp": bmp, "seismic": seismic}[peer](a, k, queries, answers)


if __name__ == "__main__":
    main()
