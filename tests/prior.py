#!/usr/bin/env python3
"""prior.py: results of `query --prior` are those of brute force, to the bit, on files and collections.

    prior.py GPUIDX [--cases N] [--seed S] [--engine E]

The scores without a prior, as whole numbers, are those that `--explain` tells of all results; to each this program adds
what the document's value adds, and sorts. A case is a query under a prior. The seed is printed."""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile

WORDS = ['w%d' % i for i in range(30)]
TYPES = {'rank': 'float', 'likes': 'int', 'years': 'int'}


def run(command, text=None):
    done = subprocess.run(command, capture_output=True, input=text, encoding='utf-8')
    if done.returncode:
        sys.exit('%s: exit %d: %s' % (' '.join(command), done.returncode, done.stderr))
    return done.stdout


def random_values(r):
    values = {'rank': r.choice([0.0, -1.5, r.random(), r.paretovariate(1), 10 ** r.uniform(-8, 12)]),
              'likes': r.choice([0, -5, r.randint(0, 9), r.randint(0, 10 ** 6), 2 ** 62]),
              'years': sorted(r.sample(range(1990, 2030), r.randint(1, 3)))}
    return {name: value for name, value in values.items() if r.random() < .8}


def build(program, r, folder):
    """[(index, values by id)]"""
    attributes = ['--attr=%s:%s' % item for item in TYPES.items()]
    n = r.choice([10, 120, 900])
    documents = [dict(random_values(r), id='d%d' % i,
                      text=' '.join(w for k, w in enumerate(WORDS) for _ in range(int(r.expovariate(.2 * k + .3)))))
                 for i in range(n)]
    cuts = sorted(r.sample(range(1, n), 7))
    parts = []
    for i, (a, b) in enumerate([(0, n)] + list(zip([0] + cuts, cuts + [n]))):
        with open('part.jsonl', 'w', encoding='utf-8') as f:
            f.writelines(json.dumps(d) + '\n' for d in documents[a:b])
        parts.append(os.path.join(folder, '%d.gx' % i))
        run([program, 'build', '-q', 'part.jsonl', '-o', parts[-1]] + attributes)
    many = os.path.join(folder, 'many')
    run([program, 'collect', '-q'] + parts[1:] + ['-o', many])
    gone = set(r.sample([d['id'] for d in documents], n // 5))
    with open('gone.txt', 'w', encoding='utf-8') as f:
        f.writelines(i + '\n' for i in sorted(gone))
    run([program, 'delete', '-q', many, '--ids=gone.txt', '--merge=none'])
    values = {d['id']: d for d in documents}
    return [(parts[0], values), (many, {i: v for i, v in values.items() if i not in gone})]


def added(prior, document, exponent):
    name, weight, form, half = prior
    value = document.get(name)
    if value is None:
        return None, 0
    x = float(value[-1] if isinstance(value, list) else value)
    if not x > 0:
        return x, 0
    f = math.log1p(x) if form == 'log' else x if form == 'linear' else \
        (1 / (1 + half / x) if x > half else x / (x + half))
    return x, min(round(math.ldexp(weight * f, exponent)), 2 ** 52)


def ask(program, engine, r, index, values, n):
    k, op = r.choice([1, 3, 10, 50]), r.choice(['or', 'and', 'and-or'])
    prior = (r.choice(list(TYPES)), float('%.3g' % 10 ** r.uniform(-6, 2)), r.choice(['log', 'sat', 'linear']),
             float('%.3g' % 10 ** r.uniform(-2, 4)))
    text = '%s:w=%r,form=%s,half=%r' % prior
    command = [program, 'query', '-q', '--engine=' + engine, '-f', 'jsonl', '--explain', index]
    if r.random() < .3:
        command += ['--filter=likes:>%d' % r.randint(0, 10)]
    queries = ''.join(' '.join(r.sample(WORDS, r.randint(1, 4))) + '\n' for _ in range(n))
    plain = {o: run(command + ['--op=' + o, '-k', str(len(values) + 1)], queries).splitlines()
             for o in (('or', 'and') if op == 'and-or' else (op,))}
    got = run(command + ['--op=' + op, '-k', str(k), '--prior=' + text], queries).splitlines()
    for i in range(n):
        what = '%r --op=%s -k %d --prior=%s, query %d of\n%s' % (command, op, k, text, i, queries)
        answer = json.loads(got[i])
        of = op
        if op == 'and-or':
            of = 'and' if len(json.loads(plain['and'][i])['hits']) >= k else 'or'
        base = json.loads(plain[of][i])
        want = []
        for hit in base['hits']:
            x, units = added(prior, values[hit['id']], hit['explain']['exponent'])
            want.append((-(hit['explain']['sum'] + units), hit['docid'], hit['id'], units, x))
        want = sorted(want)[:k]
        have = [(-(h['explain']['sum'] + h['explain']['prior']['impact']), h['docid'], h['id'],
                 h['explain']['prior']['impact'], h['explain']['prior']['value']) for h in answer['hits']]
        scores = [float('%.11g' % math.ldexp(-w[0], -h['explain']['exponent'])) for w, h in zip(want, answer['hits'])]
        if have != want or [h['score'] for h in answer['hits']] != scores or answer['matches'] != base['matches']:
            sys.exit('%s\n%r is shown, and %r is right' % (what, have, want))


def main():
    p = argparse.ArgumentParser()
    p.add_argument('program')
    p.add_argument('--cases', type=int, default=1000)
    p.add_argument('--seed', type=int, default=random.randrange(2 ** 32))
    p.add_argument('--engine', default='cpu')
    a = p.parse_args()
    print('seed %d' % a.seed)
    r, done, program = random.Random(a.seed), 0, os.path.abspath(a.program)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        while done < a.cases:
            os.mkdir(str(done))
            indexes = build(program, r, os.path.join(folder, str(done)))
            for _ in range(10):
                for index, values in indexes:
                    ask(program, a.engine, r, index, values, 10)
                    done += 10
    print('%d cases, 0 differ' % done)


main()
