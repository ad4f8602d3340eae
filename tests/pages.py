#!/usr/bin/env python3
"""pages.py: random pages of results in an order by attributes are those that brute force finds.

    pages.py GPUIDX DRIVER [--cases=N] [--seed=N] [--engine=cpu|gpu] [--small] [--count]

Random documents with attributes of all types become an index file and a collection of eight segments with deletes. Of
each, random queries (words, conditions, none), filters, orders of several attributes, groups by an attribute, priors,
offsets and chains of cursors are answered by DRIVER (support/pages_driver.c), and compared with lists that this program
makes itself of the documents. Only scores are taken from a search for all documents. The seed is printed."""
import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile

TYPES = {'n': 'int', 'far': 'int', 'years': 'int', 'x': 'float', 'when': 'date', 'brand': 'keyword', 'tags': 'keywords',
         'open': 'bool', 'rising': 'int'}
SEVERAL = ('years', 'tags')
TEXTS = ['red', 'Zed', 'a, b', 'étude', '\U0001f389', ' blank ', 'x' * 70, '0', 'redder']
WORDS = ['w%d' % i for i in range(9)]


def random_value(r, name, i):
    if name == 'n':
        return r.randint(-3, 12)
    if name == 'far':
        return r.choice([-2 ** 63, 2 ** 63 - 1, 0, 2 ** 53 + 1, r.randint(-2 ** 63, 2 ** 63 - 1)])
    if name == 'years':
        return sorted(r.sample(range(1990, 2010), r.randint(1, 4)))
    if name == 'x':
        return r.choice([0.0, 0.1, 1e-300, -8.9e307, 5e-324, -1.5, r.gauss(0, 1e6), r.random()])
    if name == 'when':
        return r.choice([r.randint(-62167219200, 253402300799), 86400 * r.randint(0, 9)])
    if name == 'brand':
        return r.choice(TEXTS)
    if name == 'tags':
        return sorted(r.sample(TEXTS, r.randint(1, 4)), key=str.encode)
    if name == 'rising':
        return i // 3
    return r.random() < .5


def date_text(second):
    """The date of a second, which may lie before the year 1 of Python's dates."""
    days, rest = divmod(second, 86400)
    era_days = days + 719468
    era, doe = divmod(era_days, 146097)
    yoe = (doe - doe // 1460 + doe // 36524 - doe // 146096) // 365
    doy = doe - (365 * yoe + yoe // 4 - yoe // 100)
    mp = (5 * doy + 2) // 153
    month = mp + 3 if mp < 10 else mp - 9
    year = yoe + era * 400 + (month <= 2)
    return '%04d-%02d-%02dT%02d:%02d:%02dZ' % (year, month, doy - (153 * mp + 2) // 5 + 1, rest // 3600,
                                               rest // 60 % 60, rest % 60)


def random_documents(r, n):
    missing = {name: r.choice([0, .1, .6]) for name in TYPES}
    frequent = [r.random() ** 2 for _ in WORDS]
    docs = []
    for i in range(n):
        words = [w for w, p in zip(WORDS, frequent) if r.random() < p for _ in range(r.randint(1, 3))] or ['none']
        values = {name: random_value(r, name, i) for name in TYPES if r.random() >= missing[name]}
        docs.append({'id': 'd%d' % i, 'words': words, 'values': values})
    return docs


def write(path, docs):
    with open(path, 'w', encoding='utf-8') as f:
        for d in docs:
            row = {'id': d['id'], 'text': ' '.join(d['words'])}
            row.update({k: date_text(v) if k == 'when' else v for k, v in d['values'].items()})
            f.write(json.dumps(row) + '\n')


def run(*args):
    done = subprocess.run(args, capture_output=True, text=True)
    if done.returncode:
        sys.exit('%s: %s' % (' '.join(args), done.stderr))


def build(gpuidx, out, docs, folder, r):
    path = os.path.join(folder, 'docs.jsonl')
    write(path, docs)
    flags = ['--attr=%s:%s' % (name, kind) for name, kind in TYPES.items()]
    if r.random() < .3:
        flags = [f + ':bins=4' if f.endswith(':int') else f for f in flags]
    run(gpuidx, 'build', '-q', '--force', '--analyzer=whitespace', '-o', out, path, *flags)


def collect(gpuidx, folder, docs, r):
    """A collection of eight segments; some documents are deleted. Returns its path and the live documents."""
    cuts = sorted(r.randint(0, len(docs)) for _ in range(7))
    parts = []
    state = r.getstate()
    for i, (a, b) in enumerate(zip([0] + cuts, cuts + [len(docs)])):
        parts.append(os.path.join(folder, 'part%d.gx' % i))
        r.setstate(state)  # the same flags for all
        build(gpuidx, parts[-1], docs[a:b], folder, r)
    out = os.path.join(folder, 'collection')
    run(gpuidx, 'collect', '-q', *parts, '-o', out)
    return out, delete(gpuidx, out, folder, docs, [d for d in docs if r.random() < .2])


def delete(gpuidx, path, folder, docs, gone):
    with open(os.path.join(folder, 'gone'), 'w') as f:
        f.write(''.join(d['id'] + '\n' for d in gone))
    if gone:
        run(gpuidx, 'delete', '-q', '--merge=none', '--ids', os.path.join(folder, 'gone'), path)
    names = {d['id'] for d in gone}
    return [d for d in docs if d['id'] not in names]


def random_condition(r):
    """A condition, and whether a document's values meet it."""
    kind = r.randrange(6)
    if kind == 0:
        low = r.randint(-4, 12)
        high = low + r.randint(0, 6)
        return 'n:[%d TO %d]' % (low, high), lambda v: 'n' in v and low <= v['n'] <= high
    if kind == 1:
        name = r.choice(sorted(TYPES))
        return 'has:%s' % name, lambda v: name in v
    if kind == 2:
        text = r.choice(TEXTS)
        name = r.choice(['brand', 'tags'])
        return '%s:"%s"' % (name, text), lambda v: text in (v.get(name, []) if name == 'tags' else [v.get(name)])
    if kind == 3:
        year = r.randint(1990, 2010)
        return 'years:>=%d' % year, lambda v: any(y >= year for y in v.get('years', []))
    if kind == 4:
        bound = r.choice([0, .1, 1e6])
        return 'x:<%r' % bound, lambda v: 'x' in v and v['x'] < bound
    most = r.choice([3, 30, 300])
    return 'rising:<=%d' % most, lambda v: v.get('rising', most + 1) <= most


def random_filter(r, depth=0):
    kind = r.randrange(4) if depth < 2 else 3
    if kind == 0:
        a, b = random_filter(r, depth + 1), random_filter(r, depth + 1)
        return '(%s AND %s)' % (a[0], b[0]), lambda v: a[1](v) and b[1](v)
    if kind == 1:
        a, b = random_filter(r, depth + 1), random_filter(r, depth + 1)
        return '(%s OR %s)' % (a[0], b[0]), lambda v: a[1](v) or b[1](v)
    if kind == 2:
        a = random_filter(r, depth + 1)
        return '(NOT %s)' % a[0], lambda v: not a[1](v)
    return random_condition(r)


def random_sort(r):
    """Levels (name, falling, missing first), and their text."""
    names = r.sample(sorted(TYPES), r.choice([1, 1, 2, 3]))
    levels = [(n, r.random() < .5, r.random() < .3) for n in names]
    texts = []
    for name, falling, first in levels:
        words = [w for w in (r.choice(['', ':asc']) if not falling else ':desc',
                             ':missing-first' if first else r.choice(['', ':missing-last'])) if w]
        r.shuffle(words)
        texts.append(name + ''.join(words))
    return levels, ','.join(texts)


def level_value(values, name, falling):
    v = values.get(name)
    if v is None:
        return None
    if name in SEVERAL:
        v = [x.encode() for x in v] if name == 'tags' else v
        return max(v) if falling else min(v)
    return v.encode() if name == 'brand' else v


def compare_levels(levels, a, b):
    for (_, falling, first), x, y in zip(levels, a, b):
        if x is None or y is None:
            if (x is None) != (y is None):
                return -1 if (x is None) == first else 1
        elif x != y:
            return -1 if (x < y) != falling else 1
    return 0


def random_prior(r):
    """(name, weight, form, half) and its text, or nothing."""
    if r.random() < .7:
        return None, ''
    prior = (r.choice(['n', 'years', 'x', 'rising']), float('%.3g' % 10 ** r.uniform(-4, 2)),
             r.choice(['log', 'sat', 'linear']), float('%.3g' % 10 ** r.uniform(-1, 3)))
    return prior, '%s:w=%r,form=%s,half=%r' % prior


def added(prior, values, exponent):
    """What a document's value adds, in units of 2 ** -exponent."""
    name, weight, form, half = prior
    value = values.get(name)
    x = 0.0 if value is None else float(max(value) if name in SEVERAL else value)
    if not x > 0:
        return 0
    f = math.log1p(x) if form == 'log' else x if form == 'linear' else \
        (1 / (1 + half / x) if x > half else x / (x + half))
    return min(round(math.ldexp(weight * f, exponent)), 2 ** 52)


def read_hits(words):
    return [(int(d), float.fromhex(s)) for d, s in (h.split(':') for h in words)]


def group_text(name, value):
    """A value as the driver prints it."""
    if value is None:
        return '-'
    if name == 'when':
        text = date_text(value)
        text = text[:10] if text.endswith('T00:00:00Z') else text
    elif name == 'open':
        text = 'true' if value else 'false'
    else:
        text = str(value)
    return 'x' + text.encode().hex()


def collapse(docs, rows, name):
    """The groups of a list of (docid, score, values): of each its value and its rows, in order of their first rows."""
    groups = {}
    for row in rows:
        groups.setdefault(docs[row[0]]['values'].get(name), []).append(row)
    return list(groups.items())


def random_collapse(r):
    """An attribute, how many documents of a group, and both as text."""
    name, most = r.choice(sorted(set(TYPES) - set(SEVERAL))), r.choice([1, 1, 2, 3, 50])
    return name, most, name + (':%d' % most if most > 1 or r.random() < .3 else '')


def group_of(got, name, asked):
    """A group that the driver gave, and the one that is expected, so that both can be compared."""
    n, value, hits = got
    if name == 'x' and value != '-':
        value = float(bytes.fromhex(value[1:]))
        return (n, value, hits), asked[1]
    return got, group_text(name, asked[1])


class Driver:
    def __init__(self, path, index, engine):
        self.process = subprocess.Popen([path, index, engine], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, *fields):
        self.process.stdin.write('\t'.join(map(str, fields)) + '\n')
        self.process.stdin.flush()
        line = self.process.stdout.readline().split()
        if not line:
            sys.exit('the driver died')
        if line[0] == 'error':
            return ' '.join(line)
        hits, *groups = [g.split() for g in (' '.join(line[4:]) + ' ').split('/ ')]
        return {'matches': int(line[0]), 'first': int(line[1]), 'moved': line[2] == '1', 'next': line[3],
                'hits': read_hits(hits), 'groups': [(int(g[0]), g[1], read_hits(g[2:])) for g in groups]}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class World:
    """The documents of an index, by docid, and the driver that answers for it."""

    def __init__(self, driver, index, engine, docs):
        self.docs, self.scores, self.exponents = docs, {}, {}
        self.driver = Driver(driver, index, engine)

    def scores_of(self, words):
        """By docid, of a query of these words; a search for all documents gives them."""
        text = ' '.join(words)
        if text not in self.scores:
            found = self.driver.ask('or', 'text', 0, 0, '', '', '', '', '', text)
            have = [i for i, d in enumerate(self.docs) if set(words) & set(d['words'])]
            assert sorted(d for d, _ in found['hits']) == have, text
            self.scores[text] = dict(found['hits'])
            self.exponents[text] = found['first']
        return self.scores[text]

    def scores_with(self, words, prior):
        """By docid, of those that have one."""
        scores = self.scores_of(words) if words else {}
        if not prior:
            return scores
        exponent = self.exponents[' '.join(words)] if words else 30
        return {i: math.ldexp(int(math.ldexp(scores.get(i, 0.0), exponent)) + added(prior, d['values'], exponent),
                              -exponent) for i, d in enumerate(self.docs)}

    def matches(self, op, kind, words, keep, k):
        """The docids that match, rising; keep: a test of values."""
        allowed = [i for i, d in enumerate(self.docs) if keep(d['values'])]
        if kind == 'all' or not words:
            return allowed if kind == 'all' else []
        if kind == 'fill': # a condition beside the words, or alone
            return allowed
        every = [i for i in allowed if set(words) <= set(self.docs[i]['words'])]
        some = [i for i in allowed if set(words) & set(self.docs[i]['words'])]
        return every if op == 'and' or (op == 'and-or' and len(every) >= k) else some

    def ordered(self, matches, levels, scores):
        """[(docid, score, values)] in order."""
        rows = [(i, scores.get(i, 0.0), tuple(level_value(self.docs[i]['values'], n, f) for n, f, _ in levels))
                for i in matches]  # by docid; the rest by sorting again and again, which keeps the order of equals
        rows.sort(key=lambda row: row[1], reverse=True)
        for at in reversed(range(len(levels))):
            _, falling, first = levels[at]
            present = sorted((row for row in rows if row[2][at] is not None), key=lambda row: row[2][at],
                             reverse=falling)
            missing = [row for row in rows if row[2][at] is None]
            rows = missing + present if first else present + missing
        return rows


def random_query(r):
    """(kind for the driver, kind for this program, words, text)"""
    words = r.sample(WORDS + ['nowhere'], r.choice([1, 1, 2, 3]))
    kind = r.randrange(5)
    if kind == 0:
        return 'all', 'all', [], ''
    if kind == 1:
        return 'boolean', 'all', [], r.choice(['*', ' * '])
    if kind == 2:
        return 'boolean', 'words', words, ' '.join(words)
    return 'text', 'words', words, ' '.join(words)


def same_groups(got, name, most, expected):
    """Whether the groups of a page are these, of which each is (value, rows)."""
    if len(got) != len(expected):
        return False
    for g, (value, rows) in zip(got, expected):
        have, want = group_of(g, name, (None, value))
        if have != (len(rows), want, [(d, s) for d, s, _ in rows[:most]]):
            return False
    return True


def check_case(w, r, say):
    """A random query, all pages of which are asked for, or some. Returns how many answers were compared."""
    asked_kind, kind, words, text = random_query(r)
    op, k = r.choice(['or', 'or', 'and', 'and-or']), r.choice([1, 2, 3, 10, 50, 500])
    filter_text, keep = random_filter(r) if r.random() < .5 else ('', lambda v: True)
    levels, sort = random_sort(r) if r.random() < .8 else ([], '')
    if kind == 'words' and asked_kind == 'boolean' and r.random() < .3 and op != 'and-or':
        condition, meets = random_condition(r)
        text, kind, outer = '%s +%s' % (text, condition), 'fill', keep
        op = 'or'
        keep = lambda v: outer(v) and meets(v)
    prior, prior_text = random_prior(r)
    scores = w.scores_with(words, prior)
    matches = w.matches(op, kind, words, keep, k)
    want = w.ordered(matches, levels, scores)
    name, most, by = random_collapse(r) if r.random() < .4 else (None, 0, '')
    groups = collapse(w.docs, want, name) if by else []
    want = [rows[0] for _, rows in groups] if by else want
    offset = r.choice([0, 0, 0, 1, k, r.randint(0, len(want) + 2), 10 ** 12])
    n, at, after = 0, 0, ''
    for _ in range(r.choice([1, 3])):
        fields = (op, asked_kind, k, offset, sort, after, by, prior_text, filter_text, text)
        got = w.driver.ask(*fields)
        expected = [(d, s) for d, s, _ in want[at + offset:at + offset + k]]
        n += 1
        if isinstance(got, str) or got['hits'] != expected or got['matches'] != len(matches) or got['moved'] or \
                got['first'] != at + offset or (got['next'] != '-') != bool(expected) or \
                not same_groups(got['groups'], name, most, groups[at + offset:at + offset + k]):
            say('asked %r' % (fields,), 'at %d' % at, 'got  %r' % (got,), 'want %r of %d' % (expected, len(matches)))
        if not expected:
            break
        at, after, offset = at + offset + len(expected), r.choice(['=', got['next']]), r.choice([0, 0, 2])
        other = w.driver.ask(op, asked_kind, k, 0, sort, got['next'], by, prior_text, filter_text, text + ' w0 zzz') \
            if asked_kind == 'text' and r.random() < .1 else 'error bad usage: another query'
        if 'error' not in other or 'another query' not in other:
            say('a cursor of another query was taken: %r' % (other,))
    return n


def check_moved(gpuidx, args, folder, collection, w, r, say):
    """Cursors of a commit are asked of the next one."""
    cases = []
    for _ in range(12):
        asked_kind, kind, words, text = random_query(r)
        levels, sort = random_sort(r) if r.random() < .8 else ([], '')
        by = random_collapse(r) if r.random() < .4 else (None, 0, '')
        prior, prior_text = random_prior(r)
        want = w.ordered(w.matches('or', kind, words, lambda v: True, 3), levels, w.scores_with(words, prior))
        want = [rows[0] for _, rows in collapse(w.docs, want, by[0])] if by[2] else want
        got = w.driver.ask('or', asked_kind, 3, 0, sort, '', by[2], prior_text, '', text)
        if got['hits']:
            cases.append((asked_kind, kind, words, text, levels, sort, by, want[len(got['hits']) - 1], got['next'],
                          (prior, prior_text)))
    last = [w.docs[c[7][0]] for c in cases]
    gone = [d for d in w.docs if r.random() < .2] + [d for d in last if r.random() < .5]
    docs = delete(gpuidx, collection, folder, w.docs, gone)
    before = {d['id']: i for i, d in enumerate(w.docs)}
    now = World(args.driver, collection, args.engine, docs)
    for asked_kind, kind, words, text, levels, sort, by, (docid, score, values), cursor, prior in cases:
        rows = now.ordered(now.matches('or', kind, words, lambda v: True, 4), levels,
                           now.scores_with(words, prior[0]))
        behind = []
        groups = collapse(docs, rows, by[0]) if by[2] else [(None, [row]) for row in rows]
        for value, group in groups:
            d, s, v = group[0]
            order = compare_levels(levels, v, values) or (score > s) - (score < s) or \
                (1 if before[docs[d]['id']] > docid else -1)
            if order > 0:
                behind.append(((d, s), (value, group)))
        got = now.driver.ask('or', asked_kind, 4, 0, sort, cursor, by[2], prior[1], '', text)
        if isinstance(got, str) or got['hits'] != [b[0] for b in behind[:4]] or got['moved'] != bool(gone) or \
                (by[2] and not same_groups(got['groups'], by[0], by[1], [b[1] for b in behind[:4]])):
            say('moved', repr((asked_kind, text, sort, by, prior, docid, score, values)), 'got  %r' % (got,),
                'want %r' % (behind[:4],))
    now.driver.close()
    return len(cases)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('gpuidx')
    p.add_argument('driver')
    p.add_argument('--cases', type=int, default=3000)
    p.add_argument('--seed', type=int, default=20261128)
    p.add_argument('--engine', default='cpu')
    p.add_argument('--count', action='store_true', help='say how many answers have been compared, as it goes on')
    p.add_argument('--small', action='store_true', help='few documents, for an engine that is slow')
    args = p.parse_args()
    r = random.Random(args.seed)
    n = n_worlds = 0
    print('seed %d' % args.seed, flush=True)

    def say(*lines):
        sys.exit('\n'.join(('world %d' % n_worlds,) + lines))

    with tempfile.TemporaryDirectory() as folder:
        while n < args.cases:
            n_worlds += 1
            docs = random_documents(r, r.choice([0, 1, 7, 65, 65] if args.small else [0, 1, 7, 65, 300, 300, 2500]))
            if n_worlds % 2 and docs:
                place = os.path.join(folder, 'c%d' % n_worlds)
                os.mkdir(place)
                path, docs = collect(args.gpuidx, place, docs, r)
            else:
                place = None
                path = os.path.join(folder, 'one.gx')
                build(args.gpuidx, path, docs, folder, r)
            w = World(args.driver, path, args.engine, docs)
            for _ in range(min(max(args.cases // 8, 40), 400)):
                n += check_case(w, r, say)
            if place:
                n += check_moved(args.gpuidx, args, place, path, w, r, say)
            w.driver.close()
            if args.count:
                print('so far %d answers, 0 differ' % n, flush=True)
    print('%d answers of %d indexes and collections, 0 differ' % (n, n_worlds))


main()
