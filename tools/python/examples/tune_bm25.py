#!/usr/bin/env python3
"""Search a grid of 100 pairs of k1 and b on one index, and print the best by nDCG@10 and the time of the whole grid.

    tune_bm25.py INDEX QUERIES.tsv QRELS
    tune_bm25.py irds:beir/scifact/test       # a dataset of ir_datasets, which is indexed first

Choose parameters on other queries than those that you report.
"""
import argparse
import collections
import os
import tempfile
import time

import numpy as np

import gpuidx

DISCOUNT = 1 / np.log2(np.arange(2, 12))


def best_dcg10(gain):
    """DCG@10 of the best order. gain: {docid: gain}."""
    ideal = sorted(gain.values(), reverse=True)[:10]
    return sum(g * w for g, w in zip(ideal, DISCOUNT))


def ndcg10(docids, counts, gains, best):
    """Mean nDCG@10 of the judged queries. docids [n, 10]; gains: of each query {docid: gain}; best: its best DCG@10."""
    total, judged = 0.0, 0
    for row, n, gain, ideal in zip(docids.tolist(), counts.tolist(), gains, best):
        if gain:
            total += sum(gain[d] * w for d, w in zip(row[:n], DISCOUNT) if d in gain) / ideal
            judged += 1
    return total / max(1, judged)


def search_grid(index, queries, qrels):
    """(nDCG@10, k1, b) of each pair. queries: {qid: text}; qrels: (qid, docno, gain) of each judgement."""
    judged = collections.defaultdict(dict)
    for qid, docno, gain in qrels:
        if gain > 0 and docno in index:
            judged[qid][index.docid(docno)] = gain
    gains, texts = [judged[q] for q in queries], list(queries.values())
    best, table = [best_dcg10(gain) for gain in gains], []
    for k1 in np.linspace(0.3, 2.1, 10):
        for b in np.linspace(0.1, 1.0, 10):
            found = index.search(texts, 10, k1=k1, b=b)
            table.append((ndcg10(found.docids, found.counts, gains, best), k1, b))
    return table


def report(index, queries, qrels):
    begin = time.process_time()
    table = search_grid(index, queries, qrels)
    seconds, (value, k1, b) = time.process_time() - begin, max(table)
    print("%d pairs for %d queries in %.2f s of processor time" % (len(table), len(queries), seconds))
    print("best: k1 %.2f, b %.2f, nDCG@10 %.4f" % (k1, b, value))


def main(source, queries_path, qrels_path):
    if source.startswith("irds:"):
        import ir_datasets

        dataset = ir_datasets.load(source[len("irds:"):])
        queries = {q.query_id: q.text for q in dataset.queries_iter()}
        with tempfile.TemporaryDirectory() as folder:
            with gpuidx.build(os.path.join(folder, "index.gx"), dataset) as index:
                report(index, queries, [(q.query_id, q.doc_id, q.relevance) for q in dataset.qrels_iter()])
        return
    with open(queries_path, encoding="utf-8") as f:
        queries = dict(line.rstrip("\n").split("\t", 1) for line in f)
    with open(qrels_path, encoding="utf-8") as f:
        qrels = [(qid, docno, int(gain)) for qid, _, docno, gain in map(str.split, f)]
    with gpuidx.open(source) as index:
        report(index, queries, qrels)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0], epilog="Choose parameters on other queries "
                                     "than those that you report.")
    parser.add_argument("index", metavar="INDEX", help="an index; or a dataset of ir_datasets, which is indexed first, "
                        "as irds:beir/scifact/test")
    parser.add_argument("queries", metavar="QUERIES.tsv", nargs="?")
    parser.add_argument("qrels", metavar="QRELS", nargs="?")
    given = parser.parse_args()
    if (given.qrels is None) != given.index.startswith("irds:") or (given.queries is None) != (given.qrels is None):
        parser.error("an index takes QUERIES.tsv and QRELS, a dataset of ir_datasets neither")
    main(given.index, given.queries, given.qrels)
