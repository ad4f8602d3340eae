#!/usr/bin/env python3
"""Compare `gpuidx eval` with trec_eval itself (pip install pytrec-eval-terrier), to 4 digits.

    tests/witness/eval.py [--gpuidx build/tools/gpuidx] [--seed N] [--cases N] [QRELS RUN]

Without files: random judgements and a run, full of ties, graded, negative and missing judgements. With two files:
those. (One evaluation a process: a second one in the same process can make pytrec_eval 0.5.11 spin.) Prints what differs; exit 1 if anything does.
"""
import argparse
import json
import random
import subprocess
import sys
import tempfile

import pytrec_eval

CUTS = [1, 5, 10, 30, 100, 1000]
PLAIN = ["map", "ndcg", "Rprec", "recip_rank", "num_ret", "num_rel", "num_rel_ret"]
CUT = ["P", "recall", "success", "ndcg_cut", "map_cut"]


def read_qrels(path):
    qrels = {}
    for line in open(path):
        qid, _, docno, rel = line.split()
        qrels.setdefault(qid, {})[docno] = int(rel)
    return qrels


def read_run(path):
    run = {}
    for line in open(path):
        qid, _, docno, _, score, _ = line.split()
        run.setdefault(qid, {})[docno] = float(score)
    return run


def compare(gpuidx, qrels_path, run_path):
    names = PLAIN + [f"{m}_{k}" for m in CUT for k in CUTS]
    ours = json.loads(subprocess.run(
        [gpuidx, "eval", "-q", "--json", "-m", ",".join(names), qrels_path, run_path],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)["queries"]
    asked = set(PLAIN) | {f"{m}.{','.join(map(str, CUTS))}" for m in CUT}
    theirs = pytrec_eval.RelevanceEvaluator(read_qrels(qrels_path), asked).evaluate(read_run(run_path))
    differences = 0
    if set(ours) != set(theirs):
        print("queries differ:", sorted(set(ours) ^ set(theirs))[:10])
        differences += 1
    for qid in sorted(set(ours) & set(theirs)):
        for name in names:
            if abs(ours[qid][name] - theirs[qid][name]) > 5e-5:
                print(f"{run_path}: query {qid}: {name}: {ours[qid][name]} against {theirs[qid][name]}")
                differences += 1
    return differences, len(ours) * len(names)


def write_random(rng, n_queries, qrels, run):
    for q in range(n_queries):
        n_docs = rng.choice([3, 20, 20, 20, 300, 2000])
        if rng.random() < .9:
            for d in rng.sample(range(n_docs), rng.randint(1, n_docs)):
                qrels.write(f"q{q} 0 d{d} {rng.choice([-1, 0, 0, 0, 1, 1, 2, 3])}\n")
        if rng.random() < .9:
            for rank, d in enumerate(rng.sample(range(n_docs), rng.randint(1, n_docs))):
                score = rng.choice([rng.randint(0, 9), rng.random(), 1 + rng.randint(0, 9) * 1e-9])
                run.write(f"q{q} Q0 d{d} {rank} {score!r} random\n")
    qrels.flush()
    run.flush()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--gpuidx", default="build/tools/gpuidx")
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--cases", type=int, default=500)
    p.add_argument("files", nargs="*")
    args = p.parse_args()
    if args.files:
        differences, compared = compare(args.gpuidx, *args.files)
    else:
        with tempfile.NamedTemporaryFile("w") as qrels, tempfile.NamedTemporaryFile("w") as run:
            write_random(random.Random(args.seed), args.cases, qrels, run)
            differences, compared = compare(args.gpuidx, qrels.name, run.name)
    print(f"{compared} values compared, {differences} differ")
    return 1 if differences or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
