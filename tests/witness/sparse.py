#!/usr/bin/env python3
"""Time the CPU engine against BMP, Seismic and PISA on learned sparse weights, on one core, in one run.

    tests/witness/sparse.py --index INDEX.gx --queries QUERIES --dir DIR [--limit N] [--rounds N] [--peers LIST]
        [--bmp SIZES] [--bmp-settings LIST] [--postings N] [--settings LIST] [--k K..]

INDEX.gx holds impacts (`gpuidx build -f csr`, `gpuidx import --impacts`), its documents reordered (`gpuidx reorder`):
all sides have the same documents in the same order. QUERIES has a query a line, a term repeated as often as it weighs;
or it is a matrix, *.csr, of whose weights the hundredths count. What the others index is made in DIR if it is not
there. BMP takes 5 to 6 KB of memory a document, 53 GB for 8.8 million; Seismic keeps --postings postings a list on
average, of which 3,500 is its own choice for so many documents.

Processor time, of every query its fastest round; a call from Python is part of a peer's time, some tens of
microseconds. Recall is the share of our exact answers' documents that a search finds; a document with the score of the
last one counts as found where its exact score is known. All that trade recall for time are shown with several settings,
ours for any k, the others for k 10: ours --approximate, BMP alpha and beta, Seismic query_cut and heap_factor. Run it
under `taskset -c 1`. Needs numpy, and pip's bmp, pyseismic-lsr and pyterrier-pisa for the peers named.
"""
import argparse
import collections
import contextlib
import functools
import glob
import importlib
import multiprocessing
import os
import re
import shutil
import subprocess
import time

import numpy as np

import bmp_index

ALL = str(2**64 - 1)
SETTINGS = (["terms:%g" % x for x in (0.2, 0.3, 0.35, 0.4, 0.45, 0.5)] +
            ["blocks:%d" % n for n in (40, 60, 80, 120, 160)] +
            ["terms:%g,blocks:%d" % (x, n) for x in (0.3, 0.4) for n in (60, 80, 120)])
DEEP_SETTINGS = "terms:0.2 blocks:80 blocks:120 blocks:160".split()
BMP_SETTINGS = "0.9,1 0.8,1 0.7,1 1,0.6 0.8,0.6 0.7,0.4"  # alpha, beta
SEISMIC_SETTINGS = (3, 0.9), (4, 0.9), (5, 0.9), (5, 0.8), (8, 0.9), (10, 0.9), (10, 0.7), (20, 0.8)  # cut, heap


def bench(a, k, approximate):
    """Our times and the recall."""
    arguments = a.index, a.queries, "or", str(k), str(a.limit), str(a.rounds), ALL, "-", approximate
    out = subprocess.run([a.bench, *arguments], check=True, capture_output=True, text=True).stdout
    mean, p50, p99 = re.search(r"search mean ([\d.]+) p50 ([\d.]+) .*p99 ([\d.]+)", out).groups()
    exact = approximate == "0"
    assert not exact or " 0 wrong" in out, out
    return (float(mean), float(p50), float(p99)), 1 if exact else float(re.search(r"recall ([\d.]+)", out)[1])


def ours(a, k):
    """Times, and of each query the documents with their scores."""
    times, _ = bench(a, k, "0")
    head, run = os.path.join(a.dir, "queries.txt"), os.path.join(a.dir, "ours.run")
    with open(a.queries, encoding="utf-8") as lines, open(head, "w", encoding="utf-8") as few:
        few.writelines(line for line, _ in zip(lines, range(a.limit)))
    subprocess.run([a.gpuidx, "replay", "-q", a.index, head, "--format=lines", "--engine=cpu", "-k", str(k), "--run",
                    run, "--force"], check=True, stdout=subprocess.DEVNULL)
    answers = collections.defaultdict(list)
    for line in open(run, encoding="utf-8"):
        query, _, document, _, score, _ = line.split()
        answers[query].append((document, float(score)))
    return times, list(answers.values())


@contextlib.contextmanager
def quiet(a):
    """What peers print goes to a file."""
    kept = os.dup(1), os.dup(2)
    with open(os.path.join(a.dir, "peers.log"), "ab") as log:
        for to in 1, 2:
            os.dup2(log.fileno(), to)
        try:
            yield
        finally:
            for to, old in zip((1, 2), kept):
                os.dup2(old, to)
                os.close(old)


def timed(search, queries, rounds):
    best, found = [float("inf")] * len(queries), [None] * len(queries)
    for _ in range(rounds):
        for i, query in enumerate(queries):
            began = time.process_time()
            found[i] = search(query)
            best[i] = min(best[i], time.process_time() - began)
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


def repeat_weights(path, out):
    """Write the queries of a CSR matrix as text: each column's number as often as its weight has hundredths."""
    with open(path, "rb") as file:
        rows, _, n = np.fromfile(file, "<i8", 3)
        ends, columns = np.fromfile(file, "<i8", rows + 1), np.fromfile(file, "<i4", n)
        times = np.maximum(1, np.rint(100 * np.fromfile(file, "<f4", n).astype(float))).astype(int)
    with open(out, "w", encoding="utf-8") as file:
        for begin, end in zip(ends, ends[1:]):
            file.write(" ".join(np.repeat(columns[begin:end], times[begin:end]).astype(str)) + "\n")


def show(name, k, times, found):
    print("| %s | %d | %.0f | %.0f | %.0f | %.4f |" % (name, k, *times, found), flush=True)


@functools.lru_cache(1)
def bmp_searcher(path):
    return importlib.import_module("bmp").Searcher(path)


def bmp(a, k, queries, answers):
    for size in a.bmp:
        path = os.path.join(a.dir, "bmp%d" % size)
        with quiet(a):
            if not os.path.exists(path):
                bmp_index.write_index(ds2i(a), path, size, size == 8)
            searcher = bmp_searcher(path)
        settings = [tuple(map(float, s.split(","))) for s in a.bmp_settings.split()]
        for alpha, beta in [(1.0, 1.0)] + (settings if k == 10 else []):
            times, found = timed(lambda q: searcher.search(q, k=k, alpha=alpha, beta=beta), queries, a.rounds)
            scores = [dict(zip(*f)) for f in found]
            # by its own scores a document that ties with the last answer counts
            least = [sorted(s.values())[-min(k, len(s))] if s else None for s in scores]
            got = recall(answers, [f[0] for f in found],
                         lambda i, d: answers[i][-1][1] if scores[i][d] == least[i] and alpha == beta == 1 else None)
            show("BMP, b = %d, alpha %g, beta %g" % (size, alpha, beta), k, times, got)


def ds2i(a):
    """The beginning of the names of ds2i's files of the index."""
    stem = os.path.join(a.dir, "ds2i")
    if not os.path.exists(stem + ".docs"):
        subprocess.run([a.gpuidx, "export", "-q", "-f", "ds2i", "--force", a.index, "-o", stem], check=True)
    return stem


def names(path):
    with open(path, encoding="utf-8") as file:
        return file.read().split("\n")[:-1]


def postings(stem):
    """Of each term its docids and weights, from ds2i's files, which are mapped."""
    docs, freqs = (np.memmap(stem + end, dtype="<u4", mode="r") for end in (".docs", ".freqs"))
    docs_at, freqs_at = 2, 0
    while docs_at < len(docs):
        size = int(docs[docs_at])
        docs_at, freqs_at = docs_at + 1, freqs_at + 1
        yield np.asarray(docs[docs_at:docs_at + size]), np.asarray(freqs[freqs_at:freqs_at + size])
        docs_at, freqs_at = docs_at + size, freqs_at + size


def write_range(stem, begin, end, path):
    """Write the vectors of documents begin to end - 1: of each its number of terms, the terms, the weights."""
    lists = list(postings(stem))
    parts = [slice(*np.searchsorted(docs, (begin, end))) for docs, _ in lists]
    counts = np.zeros(end - begin, np.uint32)
    for (docs, _), part in zip(lists, parts):
        counts[docs[part] - begin] += 1
    place = np.cumsum(2 * counts.astype(np.int64) + 1)
    out = np.empty(place[-1], "<u4")
    place -= 2 * counts.astype(np.int64) + 1
    out[place] = counts
    place += 1
    for term, ((docs, freqs), part) in enumerate(zip(lists, parts)):
        of = docs[part] - begin
        at = place[of]
        out[at] = term
        out.view("<f4")[at + counts[of]] = freqs[part]
        place[of] = at + 1
    out.tofile(path)


def write_vectors(stem, path, documents=200000):
    """Seismic's own form: the number of documents; of each its number of terms, the terms, the weights. From ds2i's
    files, by all processors."""
    n = int(np.fromfile(stem + ".docs", "<u4", 2)[1])
    ranges = [(i, min(i + documents, n)) for i in range(0, n, documents)]
    with multiprocessing.Pool() as pool:
        pool.starmap(write_range, [(stem, *r, "%s.%d" % (path, r[0])) for r in ranges])
    with open(path, "wb") as file:
        file.write(np.uint32(n).tobytes())
        for begin, _ in ranges:
            with open("%s.%d" % (path, begin), "rb") as part:
                shutil.copyfileobj(part, file, 1 << 24)
            os.unlink("%s.%d" % (path, begin))


def seismic(a, k, queries, answers):
    index_of = importlib.import_module("seismic").SeismicIndexRaw
    path, stem = os.path.join(a.dir, "seismic%d" % a.postings), ds2i(a)
    if not glob.glob(path + ".index*"):
        write_vectors(stem, path + ".bin")
        with quiet(a):
            index_of.build(path + ".bin", n_postings=a.postings).save(path + ".index")
    index = index_of.load(glob.glob(path + ".index*")[0])
    terms, documents = {t: i for i, t in enumerate(names(stem + ".terms"))}, names(stem + ".documents")
    ready = []
    for query in queries:
        known = sorted((terms[t], w) for t, w in query.items() if t in terms)
        ready.append((np.array([t for t, _ in known], np.int32), np.array([w for _, w in known], np.float32)))
    for cut, heap in SEISMIC_SETTINGS if k == 10 else ((20, 0.8), (45, 0.9)):
        times, found = timed(lambda q: index.search(*q, k, cut, heap, 0, True), ready, a.rounds)
        got = recall(answers, [[documents[d] for _, d in f] for f in found], lambda i, d: None)
        show("Seismic, query_cut %d, heap_factor %g" % (cut, heap), k, times, got)


def pisa(a, k, queries, answers):
    """On quantised impacts: the scorer `quantized` adds frequencies, times the weights of the query."""
    lib, stem, path = importlib.import_module("pyterrier_pisa._pisathon"), ds2i(a), os.path.join(a.dir, "pisa")
    os.makedirs(path, exist_ok=True)
    for suffix, name in ((".docs", "inv.docs"), (".freqs", "inv.freqs"), (".sizes", "inv.sizes"),
                         (".terms", "fwd.terms"), (".documents", "fwd.documents")):
        if not os.path.exists(os.path.join(path, name)):
            os.symlink(os.path.abspath(stem + suffix), os.path.join(path, name))
    context = lib.RetrievalContext()
    with quiet(a):
        for text, lexicon in (("fwd.terms", "fwd.termlex"), ("fwd.documents", "fwd.doclex")):
            if not os.path.exists(os.path.join(path, lexicon)):
                lib.build_binlex(os.path.join(path, text), os.path.join(path, lexicon))
        lib.prepare_index(context, path, "block_simdbp", "quantized", "")
    room = (np.zeros(k, np.int32), np.empty(k, object), np.zeros(k, np.int32), np.zeros(k, np.float32))

    def search(algorithm, query):
        n = lib.retrieve(context, algorithm, [(0, query)], k=k, threads=1, query_weighted=1, pretokenised=True,
                         result_qidxs=room[0], result_docnos=room[1], result_ranks=room[2], result_scores=room[3])
        return list(zip(room[1][:n], room[3][:n]))

    for algorithm in "block_max_maxscore", "block_max_wand", "maxscore":
        times, found = timed(lambda q: search(algorithm, q), queries, a.rounds)
        least = [f[-1][1] for f in found]
        scores = [dict(f) for f in found]
        got = recall(answers, scores, lambda i, d: answers[i][-1][1] if scores[i][d] == least[i] else None)
        show("PISA, " + algorithm, k, times, got)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", required=True)
    parser.add_argument("--queries", required=True)
    parser.add_argument("--dir", required=True)
    parser.add_argument("--gpuidx", default="build/tools/gpuidx")
    parser.add_argument("--bench", default="build/tests/bench_search")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default="bmp,seismic,pisa")
    parser.add_argument("--bmp", type=int, nargs="+", default=[32, 8], help="the documents of a block of BMP's")
    parser.add_argument("--bmp-settings", default=BMP_SETTINGS, help="its values of alpha and beta for k 10")
    parser.add_argument("--postings", type=int, default=3500)
    parser.add_argument("--settings", help="our values of --approximate, spaces between; without it many")
    parser.add_argument("--k", type=int, nargs="+", default=[10, 1000])
    a = parser.parse_args()
    os.makedirs(a.dir, exist_ok=True)
    if a.queries.endswith(".csr"):
        matrix, a.queries = a.queries, os.path.join(a.dir, "queries.all.txt")
        repeat_weights(matrix, a.queries)
    with open(a.queries, encoding="utf-8") as lines:
        queries = [dict(collections.Counter(line.split())) for line, _ in zip(lines, range(a.limit))]
    queries = [{t: float(w) for t, w in q.items()} for q in queries]
    print("| search | k | mean, us | p50, us | p99, us | recall |\n| --- | --- | --- | --- | --- | --- |")
    for k in a.k:
        times, answers = ours(a, k)
        show("gpuidx, exact", k, times, 1)
        for setting in a.settings.split() if a.settings else SETTINGS if k == 10 else DEEP_SETTINGS:
            show("gpuidx, " + setting, k, *bench(a, k, setting))
        for peer in a.peers.split(","):
            {"bmp": bmp, "seismic": seismic, "pisa": pisa}[peer](a, k, queries, answers)


if __name__ == "__main__":
    main()
