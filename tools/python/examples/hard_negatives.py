#!/usr/bin/env python3
"""For each query, print documents that rank high and are not judged relevant, one JSON object a line.

    hard_negatives.py INDEX QUERIES.tsv QRELS [NEGATIVES]
"""
import argparse
import collections
import json
import random

import gpuidx


def main(index_path, queries_path, qrels_path, n_negatives):
    rng = random.Random(1)
    with open(queries_path, encoding="utf-8") as f:
        queries = dict(line.rstrip("\n").split("\t", 1) for line in f)
    positives = collections.defaultdict(set)
    with open(qrels_path, encoding="utf-8") as f:
        for qid, _, docno, gain in map(str.split, f):
            if int(gain) > 0:
                positives[qid].add(docno)
    with gpuidx.open(index_path) as index:
        found = index.search(queries, k=1000, threads=2)
        for i, (qid, text) in enumerate(queries.items()):
            if qid in positives:
                candidates = [h.docno for h in found.hits(i) if h.docno not in positives[qid]]
                negatives = rng.sample(candidates, min(n_negatives, len(candidates)))
                print(json.dumps({"qid": qid, "query": text, "positives": sorted(positives[qid]),
                                  "negatives": negatives}))


parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("index", metavar="INDEX")
parser.add_argument("queries", metavar="QUERIES.tsv")
parser.add_argument("qrels", metavar="QRELS")
parser.add_argument("negatives", metavar="NEGATIVES", nargs="?", type=int, default=7, help="of each query (7)")
given = parser.parse_args()
main(given.index, given.queries, given.qrels, given.negatives)
