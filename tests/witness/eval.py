#!/usr/bin/env python3
"""Compare `gpuidx eval` with trec_eval itself (pip install pytrec-eval-terrier), to 4 digits; ERR and judged, which
trec_eval lacks, with their definitions written out below.

    tests/witness/eval.py [--gpuidx build/tools/gpuidx] [--seed N] [--cases N] [QRELS RUN]

Without files: random judgements and a run, full of ties, graded, negative and missing judgements. With two files:
those. With --compare also two random runs side by side: t-test against SciPy's, the
randomisation test against its definition in query/measures/comparison.h. (One evaluation a process: a second one in the
same process can make pytrec_eval 0.5.11 spin.) Prints what differs; exit 1 if anything does.
"""
import argparse
import itertools
import json
import math
import random
import struct
import subprocess
import sys
import tempfile

import pytrec_eval

CUTS = [1, 5, 10, 30, 100, 1000]
PLAIN = ["map", "ndcg", "Rprec", "recip_rank", "num_ret", "num_rel", "num_rel_ret", "bpref"]
RECALLS = [f"iprec_at_recall_{r / 10:.2f}" for r in range(11)]
OWN = ["err", "judged"]
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


def as_float(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def err(grades, max_grade):
    total, goes_on = 0.0, 1.0
    for rank, grade in enumerate(grades, 1):
        stops = (2 ** max(grade, 0) - 1) / 2 ** max_grade
        total += goes_on * stops / rank
        goes_on *= 1 - stops
    return total


def splitmix64(state):
    while True:
        state = (state + 0x9e3779b97f4a7c15) % 2**64
        z = state
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9 % 2**64
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb % 2**64
        yield z ^ (z >> 31)


def randomisation_p(d, seed, trials):
    far = abs(sum(d)) - 1e-12 * sum(map(abs, d))
    if 2 ** len(d) <= trials:
        signs = itertools.product([1, -1], repeat=len(d))
        return sum(abs(sum(s * x for s, x in zip(row, d))) >= far for row in signs) / 2 ** len(d)
    numbers, as_far = splitmix64(seed), 0
    for _ in range(trials):
        bits = sum(next(numbers) << (64 * i) for i in range((len(d) + 63) // 64))
        as_far += abs(sum(-x if bits >> i & 1 else x for i, x in enumerate(d))) >= far
    return (as_far + 1) / (trials + 1)


def compare_tests(gpuidx, rng, n_queries):
    """Two random runs: the tests of their differences."""
    import scipy.stats

    names, seed, trials = ["map", "ndcg_cut_10", "P_5", "bpref"], rng.randrange(1000), 2000
    differences = 0
    with tempfile.TemporaryDirectory() as folder:
        paths = [f"{folder}/{name}" for name in ("qrels", "a.run", "b.run")]
        with open(paths[0], "w") as qrels, open(paths[1], "w") as a, open(paths[2], "w") as b:
            for q in range(n_queries):
                for d in range(30):
                    qrels.write(f"q{q} 0 d{d} {rng.choice([0, 0, 1, 2])}\n")
                    a.write(f"q{q} Q0 d{d} 0 {rng.random()!r} a\n")
                    b.write(f"q{q} Q0 d{d} 0 {rng.random()!r} b\n")
        report = json.loads(subprocess.run(
            [gpuidx, "eval", "-q", "--json", f"--seed={seed}", f"--trials={trials}", "-m", ",".join(names), *paths],
            check=True, stdout=subprocess.PIPE).stdout)
    first, second = report["runs"]
    for name in names:
        a = [first["queries"][q][name] for q in sorted(first["queries"])]
        b = [second["queries"][q][name] for q in sorted(first["queries"])]
        d = [y - x for x, y in zip(a, b)]
        test = second["against_first"][name]
        expected = scipy.stats.ttest_rel(b, a)
        for key, value in (("t", expected.statistic), ("t_p", expected.pvalue), ("difference", sum(d) / len(d)),
                           ("random_p", randomisation_p(d, seed, trials))):
            if not abs(test[key] - value) <= 1e-9 * max(1, abs(value)):
                print(f"{n_queries} queries: {name}: {key}: {test[key]} against {value}")
                differences += 1
    return differences, 4 * len(names)


def compare(gpuidx, qrels_path, run_path):
    names = PLAIN + RECALLS + [f"{m}_{k}" for m in CUT + OWN for k in CUTS]
    report = json.loads(subprocess.run(
        [gpuidx, "eval", "-q", "--json", "-m", ",".join(names + ["gm_map"]), qrels_path, run_path],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    ours = report["queries"]
    asked = set(PLAIN) | {f"{m}.{','.join(map(str, CUTS))}" for m in CUT}
    asked |= {"iprec_at_recall", "gm_map"}
    qrels, run = read_qrels(qrels_path), read_run(run_path)
    theirs = pytrec_eval.RelevanceEvaluator(qrels, asked).evaluate(run)
    max_grade = max([4] + [g for judged in qrels.values() for g in judged.values()])
    for qid, values in theirs.items():
        ranked = sorted(run[qid].items(), key=lambda x: (as_float(x[1]), x[0]), reverse=True)
        grades = [qrels[qid].get(docno, -1) for docno, _ in ranked]
        for k in CUTS:
            values[f"err_{k}"] = err(grades[:k], max_grade)
            values[f"judged_{k}"] = sum(g >= 0 for g in grades[:k]) / len(grades[:k])
    differences = 0
    if set(ours) != set(theirs):
        print("queries differ:", sorted(set(ours) ^ set(theirs))[:10])
        differences += 1
    logs = [values["gm_map"] for values in theirs.values()]
    if abs(report["all"]["gm_map"] - math.exp(sum(logs) / len(logs))) > 1e-9:
        print(f"{run_path}: gm_map: {report['all']['gm_map']}")
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
    p.add_argument("--compare", action="store_true", help="also two runs side by side (needs SciPy)")
    p.add_argument("files", nargs="*")
    args = p.parse_args()
    if args.files:
        differences, compared = compare(args.gpuidx, *args.files)
    else:
        with tempfile.NamedTemporaryFile("w") as qrels, tempfile.NamedTemporaryFile("w") as run:
            write_random(random.Random(args.seed), args.cases, qrels, run)
            differences, compared = compare(args.gpuidx, qrels.name, run.name)
    rng = random.Random(args.seed)
    for n_queries in (2, 3, 8, 50, 64, 65, 300) if args.compare else ():
        more, n = compare_tests(args.gpuidx, rng, n_queries)
        differences, compared = differences + more, compared + n
    print(f"{compared} values compared, {differences} differ")
    return 1 if differences or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
