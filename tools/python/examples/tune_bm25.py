#!/usr/bin/env python3
"""Search a grid of k1 and b on one index, and print the best by nDCG@10 and the time of the whole grid.

    tune_bm25.py INDEX QUERIES.tsv QRELS

Choose parameters on other queries than those that you report.
"""
import collections
import sys
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


def main(index_path, queries_path, qrels_path):
    with gpuidx.open(index_path) as index:
        with open(queries_path, encoding="utf-8") as f:
            queries = dict(line.rstrip("\n").split("\t", 1) for line in f)
        judged = collections.defaultdict(dict)
        with open(qrels_path, encoding="utf-8") as f:
            for qid, _, docno, gain in map(str.split, f):
                if docno in index and int(gain) > 0:
                    judged[qid][index.docid(docno)] = int(gain)
        gains, texts, table = [judged[q] for q in queries], list(queries.values()), []
        begin, best = time.process_time(), [best_dcg10(gain) for gain in gains]
        for k1 in np.linspace(0.3, 2.1, 10):
            for b in np.linspace(0.1, 1.0, 10):
                found = index.search(texts, 10, k1=k1, b=b)
                table.append((ndcg10(found.docids, found.counts, gains, best), k1, b))
    value, k1, b = max(table)
    print("%d pairs for %d queries in %.2f s of processor time" % (len(table), len(texts), time.process_time() - begin))
    print("best: k1 %.2f, b %.2f, nDCG@10 %.4f" % (k1, b, value))


main(*sys.argv[1:])
