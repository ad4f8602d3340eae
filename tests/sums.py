#!/usr/bin/env python3
"""sums.py: facets, their figures and inner facets are those of brute force, on files and collections.

    sums.py GPUIDX [--cases N] [--seed S] [--engine E]

Random documents with attributes of all types become an index file, and the same documents, some of them deleted, a
collection of 8 segments. Random queries (words, boolean ones, filters) are asked with random facets and sums, and every
count, group and figure is compared with what this program finds with whole numbers and fractions. A case is a query
with all its facets. The seed is printed."""
import argparse
import datetime
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter

UNIT = 2 ** 1074  # each double is a whole number of its inverse
TYPES = {'n': 'int', 'far': 'int', 'years': 'int', 'price': 'float', 'wild': 'float', 'xs': 'float', 'when': 'date',
         'brand': 'keyword', 'tags': 'keywords', 'open': 'bool'}
NUMBERS = ('n', 'far', 'years', 'price', 'wild', 'xs', 'when')
SEVERAL = ('years', 'xs', 'tags')
BRANDS = ['acme', 'b', 'sony', 'zed corp', '\u00e9tude', 'x' * 40]
TAGS = ['t%d' % i for i in range(60)]
WORDS = ['w%d' % i for i in range(12)]
PERCENTS = ['0', '1', '25', '33.333333', '50', '90', '99.9', '100']
WILD = [0.0, -0.0, 5e-324, -5e-324, 1.7976931348623157e308, -1.7976931348623157e308, 2.2250738585072014e-308, 1e16, 1.0,
        -1e16, 0.1, 1e-300]


def random_value(r, name):
    if name == 'n':
        return r.randint(-3, 250)
    if name == 'far':
        return r.choice([-2 ** 63, 2 ** 63 - 1, 0, 2 ** 53 + 1, r.randint(-2 ** 63, 2 ** 63 - 1)])
    if name == 'years':
        return sorted(r.sample(range(1990, 2030), r.randint(1, 4)))
    if name == 'price':
        return round(r.choice([r.uniform(0, 50), r.uniform(0, 5000)]), 2)
    if name == 'wild':
        return r.choice(WILD) if r.random() < .5 else math.ldexp(r.uniform(-1, 1), r.randint(-1070, 1020))
    if name == 'xs':
        return sorted({round(r.gauss(0, 10), 1) for _ in range(r.randint(1, 4))})
    if name == 'when':
        return r.choice([r.randint(-62135596800, 253402300799), r.randint(1500000000, 1600000000)])
    if name == 'brand':
        return r.choice(BRANDS)
    if name == 'tags':
        return sorted(r.sample(TAGS, r.randint(1, 5)))
    return r.random() < .5


def at(second):
    return datetime.datetime(1970, 1, 1) + datetime.timedelta(days=second // 86400, seconds=second % 86400)


def date_text(second):
    t = at(second)
    return '%04d-%02d-%02d' % (t.year, t.month, t.day) + (t.strftime('T%H:%M:%SZ') if second % 86400 else '')


def second_of(text):
    m = re.fullmatch(r'(\d{4})-(\d\d)-(\d\d)(?:T(\d\d):(\d\d):(\d\d)Z)?', text)
    return int((datetime.datetime(*(int(x or 0) for x in m.groups())) - datetime.datetime(1970, 1, 1)) /
               datetime.timedelta(seconds=1))


def values_of(document, name):
    v = document['values'].get(name)
    return [] if v is None else v if isinstance(v, list) else [v]


def units(value):
    numerator, denominator = value.as_integer_ratio()
    return numerator * (UNIT // denominator)


def to_float(numerator, denominator):
    try:
        return numerator / denominator  # rounded once
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def rank_of(percent, n):
    """The least rank, from 1, that at least so many percent of n values do not exceed."""
    whole, _, part = percent.partition('.')
    return max(-(-int(whole + part.ljust(6, '0')) * n // 10 ** 8), 1)


# ---- queries ----

def condition(r, name):
    """A condition as text, and what it says of a document."""
    kind = TYPES[name]
    if r.random() < .1:
        return 'has:%s' % name, lambda d: bool(values_of(d, name))
    if kind in ('keyword', 'keywords', 'bool'):
        value = r.choice(BRANDS if kind == 'keyword' else TAGS if kind == 'keywords' else [True, False])
        text = str(value).lower() if kind == 'bool' else '"%s"' % value
        return '%s:%s' % (name, text), lambda d: value in values_of(d, name)
    bounds = [random_value(r, name) for _ in range(2)]
    low, high = sorted(b[0] if isinstance(b, list) else b for b in bounds)
    show = date_text if kind == 'date' else repr
    if kind == 'date':  # a day would mean all of it
        low, high = low | 1, high | 1
    return ('%s:[%s TO %s]' % (name, show(low), show(high)),
            lambda d: any(low <= v <= high for v in values_of(d, name)))


def expression(r, names, depth=0):
    """A filter: its text, its meaning, the attributes that it names."""
    roll = r.random()
    if depth == 2 or roll < .5:
        name = r.choice(names)
        text, test = condition(r, name)
        return text, test, {name}
    if roll < .6:
        text, test, used = expression(r, names, depth + 1)
        return 'NOT (%s)' % text, lambda d: not test(d), used
    parts = [expression(r, names, depth + 1) for _ in range(2)]
    word, join = r.choice([('AND', all), ('OR', any)])
    return (' %s ' % word).join('(%s)' % p[0] for p in parts), lambda d: join(p[1](d) for p in parts), \
        parts[0][2] | parts[1][2]


class Filter:
    """An AND of expressions, from which those on one attribute can be left out; it is refused where one names others
    too, which this test leaves to others."""

    def __init__(self, r):
        self.parts = []
        for _ in range(r.choice([0, 0, 1, 2, 3])):
            own = r.random() < .6
            self.parts.append(expression(r, [r.choice(list(TYPES))] if own else list(TYPES)))
        self.mixed = {n for p in self.parts if len(p[2]) > 1 for n in p[2]}

    def text(self):
        return ' AND '.join('(%s)' % p[0] for p in self.parts)

    def test(self, document, without=None):
        return all(p[1](document) for p in self.parts if p[2] != {without})


def query(r, boolean):
    words = r.sample(WORDS, r.randint(1, 4))
    if not boolean:
        return ' '.join(words), lambda d: any(w in d['words'] for w in words)
    some, other = words, r.choice(WORDS)
    text, test, _ = expression(r, ['n', 'brand', 'open'], 1)
    form = r.randrange(3)
    if form == 0:
        return ('(%s) AND NOT %s' % (' OR '.join(some), other),
                lambda d: any(w in d['words'] for w in some) and other not in d['words'])
    if form == 1:
        return '%s AND (%s)' % (some[0], text), lambda d: some[0] in d['words'] and test(d)
    return ' AND '.join(some), lambda d: all(w in d['words'] for w in some)


# ---- facets ----

def figures(r):
    name = r.choice(NUMBERS)
    kinds = ['min', 'max', 'avg', 'distinct'] + ['p' + p for p in PERCENTS] + (['sum'] if name != 'when' else [])
    return name, sorted(r.sample(kinds, r.randint(1, 5)))


class Facet:
    """What is asked, as text, and the answer's groups by brute force."""

    def __init__(self, r, inner=False):
        self.name = r.choice(list(TYPES))
        kind = TYPES[self.name]
        self.by, self.n, self.order = 'value', 10, 'count'
        options = []
        if kind in ('int', 'float', 'date') and r.random() < .5:
            choices = ['bins=%d' % r.choice([1, 3, 10]), 'quantiles=%d' % r.choice([1, 2, 4, 7])]
            if kind != 'date' and self.name not in ('wild', 'far'):
                choices.append('width=%s' % r.choice(['1', '10', '7'] if kind == 'int' else ['0.1', '0.5', '7', '0.3']))
            if kind == 'date':
                choices = ['by=month', 'by=day', 'by=year'] + choices
            self.by = r.choice(choices)
            options.append(self.by)
        if self.by[:2] in ('bi', 'qu', 'wi'):
            self.n, self.order = 0, 'value'
        if r.random() < .5:
            self.n = r.choice([0, 1, 3, 30])
            options.append(str(self.n) if self.n else 'all')
        if r.random() < .3:
            self.order = r.choice(['count', 'value'])
            options.append('order=' + self.order)
        self.exclude = not inner and r.random() < .2
        if self.exclude:
            options.append('exclude-own')
        self.sums = {}
        if not inner and r.random() < .6:
            for _ in range(r.randint(1, 3)):
                name, kinds = figures(r)
                self.sums[name] = sorted(set(self.sums.get(name, [])) | set(kinds))
            options += ['%s=%s' % (k, name) for name, kinds in self.sums.items() for k in kinds]
        self.inner = Facet(r, True) if not inner and r.random() < .3 else None
        self.text = ':'.join([self.name] + options) + ('/' + self.inner.text if self.inner else '')


def check(what, got, want):
    if got != want or type(got) != type(want):
        raise AssertionError('%s: %r is shown, and %r is right' % (what, got, want))


def check_figures(what, got, name, kinds, documents):
    kind = TYPES[name]
    show = date_text if kind == 'date' else (lambda v: v + 0.0 if kind == 'float' else v)
    values = sorted(v for d in documents for v in values_of(d, name))
    total, n = sum(map(units, values)), len(values)
    check(what + ' n', got['n'], n)
    for k in kinds:
        if k == 'distinct':
            want = len(set(values))
        elif k == 'sum':
            want = total // UNIT if kind == 'int' else to_float(total, UNIT)
            want = None if want in (math.inf, -math.inf) else want
        elif not n:
            want = None
        elif k in ('min', 'max'):
            want = show(values[0 if k == 'min' else -1])
        elif k == 'avg':
            want = to_float(total, UNIT * n)
            want = date_text(math.floor(want)) if kind == 'date' else want
        else:
            want = show(values[rank_of(k[1:], n) - 1])
        check('%s %s' % (what, k), got['percentiles'][k[1:]] if k[0] == 'p' else got[k], want)
    check(what + ' members', set(got) - {'n', 'percentiles'}, {k for k in kinds if k[0] != 'p'})


def range_test(kind, text):
    """What a range's text says of a value."""
    read = {'int': int, 'float': float, 'date': second_of}[kind]
    m = re.fullmatch(r'\[(\S+) TO (\S+)([\]}])', text)
    if not m:
        value = read(text)
        return lambda v: v == value
    low, high, behind = read(m.group(1)), read(m.group(2)), m.group(3)
    return lambda v: low <= v <= high and (behind == ']' or v < high)


def value_text(kind, value):
    if kind == 'float':
        return next(t for t in ('%.*g' % (p, value + 0.0) for p in (15, 16, 17)) if float(t) == value)
    return str(value).lower() if kind == 'bool' else str(value)


def keyed(facet, values):
    """The groups of a document's values: {sort key: text}."""
    kind = TYPES[facet.name]
    if kind == 'date':
        form = {'by=month': '%04d-%02d', 'by=day': '%04d-%02d-%02d'}.get(facet.by, '%04d')
        texts = {form % (at(v).year, at(v).month, at(v).day)[:form.count('%')] for v in values}
        return {t: t for t in texts}
    return {v.encode() if isinstance(v, str) else v: value_text(kind, v) for v in values}


def quantiles(values, n):
    """Where the ranges begin and end."""
    values = sorted(values)
    first = sorted({values[i] for i in (-(-i * len(values) // n) for i in range(n)) if i < len(values)})
    return [(a, max(v for v in values if b is None or v < b)) for a, b in zip(first, first[1:] + [None])]


def check_groups(what, facet, got, documents):
    """Return the documents of each group that is shown."""
    kind, present = TYPES[facet.name], [d for d in documents if values_of(d, facet.name)]
    check(what + ' present', got['present'], len(present))
    check(what + ' missing', got['missing'], len(documents) - len(present))
    groups = got['groups']
    members = []
    if facet.by[:2] in ('bi', 'qu', 'wi'):
        values = [v for d in present for v in values_of(d, facet.name)]
        tests = [range_test(kind, g['value']) for g in groups]
        members = [[d for d in present if any(t(v) for v in values_of(d, facet.name))] for t in tests]
        check(what + ' counts', [g['count'] for g in groups], [len(m) for m in members])
        if not facet.n or facet.n >= got['n_groups']:  # all ranges: each value is in one
            check(what + ' values', all(sum(t(v) for t in tests) == 1 for v in values), True)
        for g in groups:
            if re.search(r'\d{9}\d*[1-9](?= |[\]}]|$)', g['value'].split('e')[0]) and facet.by.startswith('width'):
                raise AssertionError('%s: %s has noise' % (what, g['value']))
        if facet.by.startswith('quantiles') and facet.order == 'value' and kind == 'int' and values:
            want = quantiles(values, int(facet.by[10:]))
            check(what + ' cuts', [(g['from'], g['to']) for g in groups], want[:facet.n or None])
        return members
    counts, texts = Counter(), {}
    for d in present:
        for key, text in keyed(facet, values_of(d, facet.name)).items():
            counts[key] += 1
            texts[key] = text
    order = sorted(counts, key=(lambda k: k) if facet.order == 'value' else (lambda k: (-counts[k], k)))
    order = order[:facet.n or None]
    check(what + ' groups', [(g['value'], g['count']) for g in groups], [(texts[k], counts[k]) for k in order])
    check(what + ' n_groups', got['n_groups'], len(counts))
    return [[d for d in present if k in keyed(facet, values_of(d, facet.name))] for k in order]


def check_facet(what, facet, got, documents):
    members = check_groups('%s %s' % (what, facet.text), facet, got, documents)
    for group, of in zip(got['groups'], members):
        here = '%s %s, group %s' % (what, facet.text, group['value'])
        check(here + ' sums', set(group.get('sums', {})), set(facet.sums))
        for name, kinds in facet.sums.items():
            check_figures('%s, %s' % (here, name), group['sums'][name], name, kinds, of)
        if facet.inner:
            check_facet(here, facet.inner, group['facet'], of)


# ---- indexes ----

def run(command, text=None):
    done = subprocess.run(command, capture_output=True, input=text, encoding='utf-8')
    if done.returncode:
        sys.exit('%s: exit %d: %s' % (' '.join(command), done.returncode, done.stderr))
    return done.stdout


def write(path, documents):
    with open(path, 'w', encoding='utf-8') as f:
        for d in documents:
            values = {k: date_text(v) if k == 'when' else v for k, v in d['values'].items()}
            f.write(json.dumps(dict(values, id=d['id'], text=' '.join(sorted(d['words'])))) + '\n')


def build(program, r, folder):
    """[(index, documents)]"""
    attributes = ['--attr=%s:%s' % item for item in TYPES.items()]
    if r.random() < .3:
        attributes[0] += ':bins=16'
    full = r.random()
    documents = [{'id': 'd%d' % i, 'words': {w for k, w in enumerate(WORDS) if r.random() < 1 / (k + 1)} | {'all'},
                  'values': {n: random_value(r, n) for n in TYPES if r.random() < full or n == 'n'}}
                 for i in range(r.choice([8, 60, 400, 1500]))]
    parts, cuts = [], sorted(r.sample(range(1, len(documents)), 7)) if len(documents) > 8 else list(range(1, 8))
    for i, (a, b) in enumerate(zip([0] + cuts, cuts + [len(documents)])):
        write('part.jsonl', documents[a:b])
        parts.append(os.path.join(folder, '%d.gx' % i))
        run([program, 'build', '-q', 'part.jsonl', '-o', parts[-1]] + attributes)
    write('all.jsonl', documents)
    one, many = os.path.join(folder, 'one.gx'), os.path.join(folder, 'many')
    run([program, 'build', '-q', 'all.jsonl', '-o', one] + attributes)
    run([program, 'collect', '-q'] + parts + ['-o', many])
    gone = set(r.sample([d['id'] for d in documents], len(documents) // 5))
    if gone:
        with open('gone.txt', 'w') as f:
            f.write('\n'.join(sorted(gone)) + '\n')
        run([program, 'delete', '-q', many, '--ids=gone.txt', '--merge=none'])
    return [(one, documents), (many, [d for d in documents if d['id'] not in gone])]


def ask(program, engine, r, index, documents, n):
    under, boolean = Filter(r), r.random() < .4
    facets = [f for f in (Facet(r) for _ in range(r.randint(0, 3))) if not (f.exclude and f.name in under.mixed)]
    facets = list({f.text: f for f in facets}.values())
    sums = {}
    for _ in range(r.randint(0 if facets else 1, 3)):
        name, kinds = figures(r)
        sums[name] = sorted(set(sums.get(name, [])) | set(kinds))
    command = [program, 'query', '-q', index, '-k1', '-f', 'jsonl', '--engine=' + engine,
               '--syntax=' + ('boolean' if boolean else 'plain')]
    if under.parts:
        command.append('--filter=' + under.text())
    command += ['--facet=' + f.text for f in facets]
    command += ['--sums=' + ':'.join([name] + kinds) for name, kinds in sums.items()]
    queries = [query(r, boolean) for _ in range(n)]
    lines = run(command, ''.join(q[0] + '\n' for q in queries)).splitlines()
    check('answers', len(lines), n)
    for line, (text, test) in zip(lines, queries):
        got = json.loads(line)
        found = [d for d in documents if test(d)]
        matches = [d for d in found if under.test(d)]
        what = '%s\n%s\n' % (' '.join(map(repr, command)), text)
        check(what + 'matches', got['matches'], len(matches))
        for facet, answer in zip(facets, got.get('facets', [])):
            own = [d for d in found if under.test(d, facet.name)] if facet.exclude else matches
            check_facet(what, facet, answer, own)
        check(what + 'sums', set(got.get('sums', {})), set(sums))
        for name, kinds in sums.items():
            check_figures(what + 'all, ' + name, got['sums'][name], name, kinds, matches)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('program')
    p.add_argument('--cases', type=int, default=3000)
    p.add_argument('--seed', type=int, default=random.randrange(2 ** 32))
    p.add_argument('--engine', default='cpu')
    a = p.parse_args()
    print('seed %d' % a.seed)
    r, done, program = random.Random(a.seed), 0, os.path.abspath(a.program)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        while done < a.cases:
            os.mkdir(os.path.join(folder, str(done)))
            indexes = build(program, r, os.path.join(folder, str(done)))
            for _ in range(20):
                for index, documents in indexes:
                    n = 20 if len(documents) < 1000 else 8
                    ask(program, a.engine, r, index, documents, n)
                    done += n
    print('%d cases, 0 differ' % done)


main()
