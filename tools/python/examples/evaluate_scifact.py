#!/usr/bin/env python3
"""Index SciFact, answer its queries, and evaluate the run with ir-measures (pip install ir-measures).

    evaluate_scifact.py FOLDER      tests/data/scifact
"""
import argparse
import json
import lzma
import os
import tempfile

import gpuidx


def corpus(folder):
    with lzma.open(os.path.join(folder, "corpus.jsonl.xz"), "rt", encoding="utf-8") as f:
        yield from map(json.loads, f)


def main(folder):
    import ir_measures

    with open(os.path.join(folder, "queries.tsv"), encoding="utf-8") as f:
        queries = dict(line.rstrip("\n").split("\t", 1) for line in f)
    qrels = list(ir_measures.read_trec_qrels(os.path.join(folder, "qrels.txt")))
    with tempfile.TemporaryDirectory() as work, gpuidx.build(os.path.join(work, "scifact.gx"), corpus(folder)) as index:
        run = index.search(queries, k=1000).to_dict()
    measures = [ir_measures.nDCG @ 10, ir_measures.R @ 100, ir_measures.AP]
    for measure, value in ir_measures.calc_aggregate(measures, qrels, run).items():
        print("%-8s %.4f" % (measure, value))


parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("folder", metavar="FOLDER", help="tests/data/scifact of the repository")
main(parser.parse_args().folder)
