#!/usr/bin/env python3
"""expand.py: queries with words that stand for several find what queries with all these words find, to the bit.

    expand.py GPUIDX [--cases N] [--seed S] [--engine E]

The words of neutrin*, n?utrino, neutrino~1 and /neutrin[os]/ are found here, among all words of the documents, and
written out with OR between: a file and a collection of 4 segments with deletes, every operator, limits, filters.
A case is a query of both. The seed is printed."""
import argparse
import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

LETTERS = 'abcd\u00e9\u4e2d'


def run(command, text=None):
    done = subprocess.run(command, capture_output=True, input=text, encoding='utf-8')
    if done.returncode:
        sys.exit('%s: exit %d: %s' % (' '.join(command), done.returncode, done.stderr))
    return done.stdout


def distance(a, b):
    """Optimal string alignment."""
    d = [[i + j if i * j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 1] == b[j - 2] and a[i - 2] == b[j - 1]:
                d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1)
    return d[len(a)][len(b)]


def build(program, r, folder):
    """[(index, its documents that are live)]"""
    words = [''.join(r.choice(LETTERS[:r.choice([3, 6])]) for _ in range(r.randint(1, 8))) for _ in range(400)]
    documents = [{'id': 'd%d' % i, 'y': r.randint(0, 3),
                  'text': ' '.join(r.choice(words[:r.choice([10, 60, 400])]) for _ in range(r.randint(1, 30)))}
                 for i in range(r.choice([12, 150, 600]))]
    cuts = [0] + sorted(r.sample(range(1, len(documents)), 3)) + [len(documents)]
    parts = []
    for i, (a, b) in enumerate([(0, len(documents))] + list(zip(cuts, cuts[1:]))):
        with open('part.jsonl', 'w', encoding='utf-8') as f:
            f.writelines(json.dumps(d) + '\n' for d in documents[a:b])
        parts.append(os.path.join(folder, '%d.gx' % i))
        run([program, 'build', '-q', 'part.jsonl', '-o', parts[-1], '--analyzer=whitespace', '--attr=y:int'])
    many = os.path.join(folder, 'many')
    run([program, 'collect', '-q'] + parts[1:] + ['-o', many])
    gone = set(r.sample([d['id'] for d in documents], len(documents) // 5))
    with open('gone', 'w', encoding='utf-8') as f:
        f.writelines(d + '\n' for d in sorted(gone))
    run([program, 'delete', '-q', '--merge=none', many, '--ids=gone'])
    return [(parts[0], documents), (many, [d for d in documents if d['id'] not in gone])]


def dfs(documents):
    n = {}
    for d in documents:
        for w in set(d['text'].split()):
            n[w] = n.get(w, 0) + 1
    return n


def random_pattern(r, words):
    """(its text, what says whether and how far a word matches)"""
    w = r.choice(words)
    kind = r.randrange(4)
    if kind == 0:
        begin = w[:r.randint(1, len(w))]
        return begin + '*', lambda x: 0 if x.startswith(begin) else None
    if kind == 1:
        text = ''.join(r.choice(['?', '*', c, c, c, c]) for c in w)
        text = text if text.strip('?*') else text + w[0]
        form = re.compile(''.join('.*' if c == '*' else '.' if c == '?' else c for c in text))
        return text, lambda x: 0 if form.fullmatch(x) else None
    if kind == 2:
        at, most = r.randrange(len(w)), r.choice([0, 1, 2, None])
        swapped = w[:at] + w[at + 1:at + 2] + w[at:at + 1] + w[at + 2:]
        v = r.choice([w, w[:at] + w[at + 1:], w[:at] + 'a' + w[at:], swapped])
        v = v or 'a'
        far = most if most is not None else 0 if len(v) < 3 else 1 if len(v) < 6 else 2
        return v + ('~' if most is None else '~%d' % most), lambda x: distance(v, x) if distance(v, x) <= far else None
    text = '%s(%s|%s+)[a-c]%s' % (w[:1], r.choice(LETTERS), r.choice(LETTERS), r.choice(['*', '?', '{1,3}', '']))
    form = re.compile(text)
    return '/%s/' % text, lambda x: 0 if form.fullmatch(x) else None


def written_out(matches, n, most):
    """The words with OR between."""
    found = sorted(((-n[w], w.encode('utf-8'), w, matches(w)) for w in n if matches(w) is not None))[:most]
    return '(%s)' % ' OR '.join('"%s"^%.9g' % (w, struct.unpack('f', struct.pack('f', 1 / (1 + d)))[0])
                                for _, _, w, d in found) if found else '"nothing-is-so"'


def random_query(r, n, most):
    """(with patterns, written out)"""
    parts = []
    for _ in range(r.randint(1, 3)):
        if parts and r.random() < .4:
            w = r.choice(list(n))
            parts.append((w, '"%s"' % w))
        else:
            text, matches = random_pattern(r, list(n))
            parts.append((text, written_out(matches, n, most)))
    form = r.choice(['{}', '+{}', '-{}', '{}^2.5', '({})'])
    signs = ['{}'] + [r.choice(['{}', '+{}', '-{}', '{}^2.5', form]) for _ in parts[1:]]
    between = r.choice([' ', ' ', ' AND ', ' OR ']) if all(s[0] not in '+-' for s in signs) else ' '
    return tuple(between.join(s.format(p[i]) for s, p in zip(signs, parts)) for i in (0, 1))


def answers(program, index, queries, most, op, engine, extra):
    return run([program, 'query', index, '-q', '--engine=' + engine, '--syntax=boolean', '--op=' + op, '-f', 'trec',
                '-k', '50', '--max-expansions=%d' % most] + extra, ''.join(q + '\n' for q in queries))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('program')
    parser.add_argument('--cases', type=int, default=400)
    parser.add_argument('--seed', type=int, default=random.randrange(10 ** 9))
    parser.add_argument('--engine', default='cpu')
    a = parser.parse_args()
    program = os.path.abspath(a.program)
    print('seed %d' % a.seed)
    r = random.Random(a.seed)
    done = 0
    with tempfile.TemporaryDirectory(prefix='gpuidx-expand-') as folder:
        os.chdir(folder)
        while done < a.cases:
            world = tempfile.mkdtemp(dir=folder)
            for index, documents in build(program, r, world):
                n = dfs(documents)
                for _ in range(4):
                    most, op = r.choice([1, 3, 10, 50]), r.choice(['or', 'and'])
                    extra = r.choice([[], [], ['--filter=y:>=2']])
                    pairs = [random_query(r, n, most) for _ in range(25)]
                    found = [answers(program, index, q, most, op, a.engine, extra).splitlines() for q in zip(*pairs)]
                    if found[0] != found[1]:
                        for x, y in zip(found[0] + ['nothing'], found[1] + ['nothing']):
                            if x != y:
                                number = int((x if x != 'nothing' else y).split()[0])
                                sys.exit('%s --op=%s --max-expansions=%d, seed %d: %r finds %r; %r finds %r' % (
                                    index, op, most, a.seed, pairs[number - 1][0], x, pairs[number - 1][1], y))
                    done += len(pairs)
    print('%d cases, 0 differ' % done)


main()
