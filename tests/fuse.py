#!/usr/bin/env python3
"""fuse.py: `gpuidx fuse` adds ranks and scores as its formulas say.

    fuse.py GPUIDX [--cases N] [--seed S] [--ranx]

Random runs, with equal scores among them. --ranx compares with that package of PyPI, too, where no scores are equal."""
import argparse
import math
import os
import random
import subprocess
import sys
import tempfile


def random_run(r, equal):
    run = {}
    for q in r.sample(range(6), r.randint(1, 5)):
        docs = r.sample(range(40), r.randint(1, 25))
        run['q%d' % q] = {'d%d' % d: float(r.randint(-3, 3)) if equal else r.uniform(-5, 50) for d in docs}
    return run


def added(scores, method, norm, k):
    if method == 'rrf':
        return {d: 1 / (k + 1 + i) for i, d in enumerate(sorted(scores, key=lambda d: -scores[d]))}
    values = list(scores.values())
    low, high, mean = min(values), max(values), math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / len(values))
    if norm == 'none':
        return scores
    if low == high:
        return {d: 0 for d in scores}
    return {d: (v - low) / (high - low) if norm == 'minmax' else (v - mean) / deviation for d, v in scores.items()}


def expected(runs, weights, method, norm, k):
    fused = {}
    for run, weight in zip(runs, weights):
        for q, scores in run.items():
            for d, v in added(scores, method, norm, k).items():
                sums = fused.setdefault(q, {})
                sums[d] = sums.get(d, 0) + weight * v
    return fused


def by_ranx(runs, weights, method, norm, k):
    import ranx
    given = [ranx.Run(run) for run in runs]
    if method == 'rrf':
        return ranx.fuse(given, norm=None, method='rrf', params={'k': k}).to_dict()
    norms = {'none': None, 'minmax': 'min-max', 'zscore': 'zmuv'}
    return ranx.fuse(given, norm=norms[norm], method='wsum', params={'weights': weights}).to_dict()


def read(text):
    run, order = {}, {}
    for line in text.splitlines():
        q, q0, d, rank, score, tag = line.split()
        order.setdefault(q, []).append(d)
        assert q0 == 'Q0' and tag == 'gpuidx-fuse' and int(rank) == len(order[q])
        run.setdefault(q, {})[d] = float(score)
    for q, docs in order.items():
        if docs != sorted(docs, key=lambda d: (-run[q][d], d)):
            sys.exit('query %s is not in order' % q)
    return run


def compare(what, a, b):
    if a.keys() != b.keys() or any(a[q].keys() != b[q].keys() for q in a):
        sys.exit('%s: other documents' % what)
    for q in a:
        for d in a[q]:
            if abs(a[q][d] - b[q][d]) > 1e-9:
                sys.exit('%s: query %s, document %s: %r and %r' % (what, q, d, a[q][d], b[q][d]))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--cases', type=int, default=60)
    parser.add_argument('--seed', type=int, default=random.randrange(10 ** 9))
    parser.add_argument('--ranx', action='store_true')
    a = parser.parse_args()
    print('seed %d' % a.seed)
    r = random.Random(a.seed)
    with tempfile.TemporaryDirectory() as folder:
        for i in range(a.cases):
            runs = [random_run(r, not a.ranx and r.random() < .4) for _ in range(r.randint(1, 4))]
            if a.ranx:  # which takes runs of the same queries alone
                queries = ['q%d' % q for q in range(3)]
                runs = [{q: {'d%d' % d: r.uniform(-5, 50) for d in r.sample(range(40), r.randint(2, 25))}
                         for q in queries} for _ in range(r.randint(2, 4))]
            method, norm, k = r.choice(['rrf', 'sum']), r.choice(['none', 'minmax', 'zscore']), r.choice([0, 1, 60])
            weights = [r.choice([0.0, 1.0, .25, -2.0, 3.5]) for _ in runs]
            if a.ranx and method == 'rrf':
                weights = [1.0] * len(runs)
            names = []
            for j, run in enumerate(runs):
                names.append(os.path.join(folder, 'r%d' % j))
                with open(names[-1], 'w', encoding='utf-8') as f:
                    f.writelines('%s Q0 %s 0 %r tag\n' % (q, d, s) for q in run for d, s in run[q].items())
            flags = ['--norm=' + norm, '--rrf-k=%d' % k, '--weights=' + ','.join('%r' % w for w in weights)]
            out = subprocess.run([a.program, 'fuse', '-m', method] + flags + names, capture_output=True, text=True,
                                 check=True)
            what = 'case %d of seed %d: %s %s' % (i, a.seed, method, norm)
            compare(what, read(out.stdout), expected(runs, weights, method, norm, k))
            if a.ranx:
                compare(what + ' by ranx', read(out.stdout), by_ranx(runs, weights, method, norm, k))
    print('%d cases, 0 differ' % a.cases)


main()
