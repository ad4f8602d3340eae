#!/usr/bin/env python3
"""units.py: a collection of vectors with a given unit answers as an index that is built of its vectors.

    units.py GPUIDX [--cases=N] [--seed=N]

Random vectors are added to a collection of impacts, updated, deleted and merged, and after all changes random queries
are answered by the collection and by an index that `gpuidx build --unit` makes of the vectors that are left: ids and
scores are the same, to the last digit. The seed is printed."""
import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit('%s: %s' % (' '.join(command), done.stderr))
    return done.stdout


def random_vector(r):
    most = r.choice([1, 2, 9])
    return {'t%d' % r.randrange(30): round(r.random() * most + .001, 3) for _ in range(r.randint(0, 8))}


def write(path, docs):
    with open(path, 'w') as f:
        f.writelines(json.dumps({'id': i, 'vector': v}) + '\n' for i, v in docs)


def begin(gpuidx, r, unit):
    """A new collection c, with vectors or without. Returns its vectors, and the unit, perhaps by an index's name."""
    docs = [('d%d' % i, random_vector(r)) for i in range(r.randint(1, 20))] if r.random() < .5 else []
    write('a.jsonl', docs)
    if not docs:
        run(gpuidx, 'add', '-q', '--create', '-f', 'vectors', '--unit=' + unit, 'c', 'a.jsonl')
        return {}, unit
    run(gpuidx, 'build', '-q', '-f', 'vectors', 'a.jsonl', '-o', 'u.gx', '--unit=' + unit)
    run(gpuidx, 'collect', '-q', 'u.gx', '-o', 'c')
    return dict(docs), r.choice([unit, 'u.gx'])


def change(gpuidx, r, docs, step):
    kind = r.randrange(3)
    some = r.sample(sorted(docs), min(len(docs), 3))
    if kind == 0 or not docs:
        new = [('n%d_%d' % (step, i), random_vector(r)) for i in range(r.randint(1, 9))]
        write('b.jsonl', new)
        run(gpuidx, 'add', '-q', 'c', 'b.jsonl')
    elif kind == 1:
        new = [(i, random_vector(r)) for i in some]
        write('b.jsonl', new)
        run(gpuidx, 'update', '-q', 'c', 'b.jsonl')
    else:
        new = []
        with open('gone', 'w') as f:
            f.writelines(i + '\n' for i in some)
        run(gpuidx, 'delete', '-q', '--ids=gone', 'c')
    for i in some if kind else ():
        docs.pop(i, None)
    docs.update(new)
    if r.random() < .3:
        run(gpuidx, 'merge', '-q', 'c', '--policy=' + r.choice(['tiers', 'all']))


def check_case(gpuidx, r, case):
    for name in ('c', 'u.gx', 'x.gx'):
        shutil.rmtree(name, ignore_errors=True)
        if os.path.isfile(name):
            os.unlink(name)
    docs, unit = begin(gpuidx, r, r.choice(['0.01', '0.0037', '0.1', '1e-3', '2']))
    for step in range(r.randint(1, 5)):
        change(gpuidx, r, docs, step)
    run(gpuidx, 'check', '-q', 'c')
    write('f.jsonl', docs.items())
    run(gpuidx, 'build', '-q', '-f', 'vectors', 'f.jsonl', '-o', 'x.gx', '--unit=' + unit)
    for _ in range(5):
        query = json.dumps({'t%d' % r.randrange(32): r.choice([1, .5, 2.25]) for _ in range(r.randint(1, 4))})
        have, want = (run(gpuidx, 'query', '-q', '--engine=cpu', p, query, '-f', 'csv', '-k', '50')
                      for p in ('c', 'x.gx'))
        if have != want:
            sys.exit('case %d, %s\ngot\n%s\nwant\n%s' % (case, query, have, want))


def main():
    p = argparse.ArgumentParser()
    p.add_argument('gpuidx')
    p.add_argument('--cases', type=int, default=12)
    p.add_argument('--seed', type=int, default=20261129)
    args = p.parse_args()
    gpuidx, r = os.path.abspath(args.gpuidx), random.Random(args.seed)
    print('seed %d' % args.seed, flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for case in range(args.cases):
            check_case(gpuidx, r, case)
        os.chdir('/')
    print('%d answers, 0 differ' % (5 * args.cases))


main()
