#!/usr/bin/env python3
"""fields.py: results of `query --fields` are those of brute force, to the bit, on files and collections.

    fields.py GPUIDX [--cases N] [--seed S] [--engine E] [--verbose]

Documents have random fields. A case is a query by random fields, weights, b and k1 of one file, of a file of other
codecs and order, or of 8 segments with deletes; scores are compared as whole numbers. The seed is printed."""
import argparse
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

from phrases import Phrase

WORDS = ['w%d' % i for i in range(24)]
NAMES = ['title', 'text', 'keys', 'abstract', 'note']
SCORERS = {'bm25': (.9, .4), 'bm25:lucene': (1.2, .75), 'bm25:pisa': (.9, .4), 'bm25:atire': (.9, .4),
           'bm25:robertson': (1.2, .75)}


def run(command, text=None):
    done = subprocess.run(command, capture_output=True, input=text, encoding='utf-8')
    if done.returncode:
        sys.exit('%s: exit %d: %s' % (' '.join(command), done.returncode, done.stderr))
    return done.stdout


def f32(x):
    """A double as the nearest float: the sum, product or quotient of floats is rounded once this way."""
    return struct.unpack('f', struct.pack('f', x))[0]


def random_text(r, rare):
    return ' '.join(r.choices(WORDS, [1 / (i + 1) for i in range(len(WORDS))], k=int(r.expovariate(rare))))


def random_documents(r, names, positions):
    documents = []
    for i in range(r.choice([1, 7, 130, 700])):
        d = {'id': 'd%d' % i, 'year': r.randint(2000, 2009)}
        for name in names:
            if r.random() < .85:
                d[name] = random_text(r, .04 if name == names[-1] else .4)
        if r.random() < .02:
            d[names[0]] = ' '.join([WORDS[3]] * (r.randint(200, 400) if not positions else r.randint(20, 30)))
        documents.append(d)
    return documents


def write(path, documents):
    with open(path, 'w', encoding='utf-8') as f:
        f.writelines(json.dumps(d) + '\n' for d in documents)


def build(program, r, folder):
    """[(index, documents, names of fields)], and whether there are positions"""
    names = r.sample(NAMES, r.randint(1, 4))
    positions = r.random() < .6
    documents = random_documents(r, names, positions)
    n = len(documents)
    flags = ['--positions'] * positions + ['--analyzer=whitespace', '--attr=year:int', '--field=' + ','.join(names)]
    if r.random() < .3:
        flags += ['--codec=' + r.choice(['gpubp256', 'gpuvbyte1024', 'auto', 'rice'])]
    if r.random() < .3:
        flags += ['-j3', '-m3M']
    one = os.path.join(folder, 'one.gx')
    write('all.jsonl', documents)
    run([program, 'build', '-q', 'all.jsonl', '-o', one] + flags)
    run([program, 'check', '-q', '--level=full', one])
    indexes = [(one, documents, names)]
    other = os.path.join(folder, 'other.gx')
    run([program, 'recode', '-q', one, '-o', other, '--codec=' + r.choice(['gpupfd128', 'gpubp256'])])
    run([program, 'check', '-q', '--level=full', other])
    indexes.append((other, documents, names))
    if n < 10:
        return indexes, positions
    cuts, parts = sorted(r.sample(range(1, n), 7)), []
    for i, (a, b) in enumerate(zip([0] + cuts, cuts + [n])):
        write('part.jsonl', documents[a:b])
        parts.append(os.path.join(folder, '%d.gx' % i))
        run([program, 'build', '-q', 'part.jsonl', '-o', parts[-1]] + flags)
    many = os.path.join(folder, 'many')
    if r.random() < .5:
        run([program, 'collect', '-q'] + parts + ['-o', many])
    else:
        for i, (a, b) in enumerate(zip([0] + cuts, cuts + [n])):
            write('part.jsonl', documents[a:b])
            kept = [f for f in flags if f[:2] == '--' and f[:7] != '--codec']
            run([program, 'add', '-q', many, 'part.jsonl', '--create', '--merge=none'] + kept)
    gone = set(r.sample([d['id'] for d in documents], n // 5))
    with open('gone.txt', 'w', encoding='utf-8') as f:
        f.writelines(i + '\n' for i in sorted(gone))
    run([program, 'delete', '-q', many, '--ids=gone.txt', '--merge=none'])
    alive = [d for d in documents if d['id'] not in gone]
    indexes.append((many, alive, names))
    merged = os.path.join(folder, 'merged.gx')
    run([program, 'recode', '-q', many, '-o', merged])
    run([program, 'check', '-q', '--level=full', merged])
    indexes.append((merged, alive, names))
    mixed = os.path.join(folder, 'mixed.gx')
    run([program, 'reorder', '-q', merged, '-o', mixed, '--order=random'])
    run([program, 'check', '-q', '--level=full', mixed])
    shown = run([program, 'doc', '--format=json', mixed] + ['#%d' % i for i in range(len(alive))]).splitlines()
    by_id = {d['id']: d for d in alive}
    indexes.append((mixed, [by_id[json.loads(line)['id']] for line in shown], names))
    return indexes, positions


class Field:
    def __init__(self, name, weight, b):
        self.name, self.weight, self.b = name, weight, b


class Placed:
    """A field's words and where they stand, for Phrase.tf."""
    def __init__(self, words):
        self.parts = [{}]
        for at, word in enumerate(words):
            self.parts[0].setdefault(word, []).append(at)


class World:
    """What brute force knows: words of each document by field, lengths, and impacts by the fields of a query.

    Names of lists: word, and field:word for one field alone. idf: of the scorer, idf(df)."""
    def __init__(self, documents, names, fields, k1, b, scoring, scorer):
        self.documents, self.scoring, self.scorer, self.k1 = documents, scoring, scorer, k1
        self.fields = fields
        self.words = words = [{f: d.get(f, '').split() for f in names} for d in documents]
        n = len(documents)
        self.phrases = {}
        self.impacts, self.df = [{} for _ in documents], {}
        self.norms = norms = {}
        self.units, self.dfs = {}, {}
        self.every = every = fields + [Field(name, 1.0, b) for name in names if name not in [f.name for f in fields]]
        for f in every:
            total = sum(len(w[f.name]) for w in words)
            average = total / n if total else 1
            norms[f.name] = f32(1 - f.b), f32(f.b / average)
        self.in_order = in_order = sorted(fields, key=lambda f: names.index(f.name))
        if scoring != 'bm25f':
            self.one_by_one(words, norms, every, in_order)
            return
        for at, w in enumerate(words):
            tfs = {}
            for f in in_order:
                for word in set(w[f.name]):
                    tfs[word] = f32(tfs.get(word, 0.0) + self.part(f, f.weight, norms, w, word))
            for f in every:
                for word in set(w[f.name]):
                    tfs[f.name + ':' + word] = f32(0.0 + self.part(f, f.weight, norms, w, word))
            for word, tf in tfs.items():
                self.add(at, word, self.saturated(tf))

    def one_by_one(self, words, norms, every, in_order):
        """sum and best: each field has a df of its own, and a share in the list's unit."""
        dfs, shares = self.dfs, {}
        for w in words:
            for f in every:
                for word in set(w[f.name]):
                    dfs[f.name, word] = dfs.get((f.name, word), 0) + 1
        for word in WORDS:
            for name, fields in [(word, in_order)] + [(f.name + ':' + word, [f]) for f in every]:
                weights = {f.name: f32(f.weight) * self.idf_of(dfs[f.name, word]) for f in fields
                           if (f.name, word) in dfs}
                unit = f32(sum(weights.values()))
                self.units[name] = f32(unit * 2.0 ** -23)
                shares[name] = {f: f32(x / unit) if unit > 0 else 0.0 for f, x in weights.items()}
        for at, w in enumerate(words):
            parts = {}
            for f in in_order + every:
                alone = f.name + ':'
                for word in set(w[f.name]):
                    part = self.saturated(self.part(f, 1.0, norms, w, word))
                    parts[alone + word] = f32(shares[alone + word][f.name] * part)
            for f in in_order:
                for word in set(w[f.name]):
                    part = self.saturated(self.part(f, 1.0, norms, w, word))
                    parts[word] = f32(parts.get(word, 0.0) + f32(shares[word][f.name] * part))
            for word, part in parts.items():
                self.add(at, word, part)

    def add_phrase(self, text, phrase):
        """A phrase as a word, named by its text: in all fields, and in each alone."""
        self.phrases[text] = [word for word, _ in phrase.words]
        said, lists = self.phrases[text], [(text, self.in_order)] + [(f.name + ':' + text, [f]) for f in self.every]
        shares = {}
        for name, fields in lists if self.scoring != 'bm25f' else []:
            weights = {f.name: f32(f.weight) * sum(self.idf_of(self.dfs[f.name, w]) for w in said) for f in fields
                       if all((f.name, w) in self.dfs for w in said)}
            unit = f32(sum(weights.values()))
            self.units[name] = f32(unit * 2.0 ** -23)
            shares[name] = {f: f32(x / unit) if unit > 0 else 0.0 for f, x in weights.items()}
        for at, words in enumerate(self.words):
            tfs = {f.name: phrase.tf(Placed(words[f.name])) for f in self.every}
            for name, fields in lists:
                found, part = False, 0.0
                for f in (f for f in fields if tfs[f.name]):
                    found = True
                    if self.scoring == 'bm25f':
                        part = f32(part + self.part(f, f.weight, self.norms, words, tfs[f.name]))
                    else:
                        x = self.saturated(self.part(f, 1.0, self.norms, words, tfs[f.name]))
                        part = f32(part + f32(shares[name][f.name] * x))
                if found:
                    self.add(at, name, self.saturated(part) if self.scoring == 'bm25f' else part)

    def idf(self, word):
        field, colon, text = word.rpartition(':')
        if text not in self.phrases:
            return self.idf_of(self.df[word])
        return sum(self.idf_of(self.df[field + colon + w]) for w in self.phrases[text])

    def add(self, at, word, part):
        self.impacts[at][word] = max(1, round(part * 2 ** 23))
        self.df[word] = self.df.get(word, 0) + 1

    def saturated(self, tf):
        total = f32(tf + f32(self.k1))
        return f32(tf / total) if total else 0.0

    @staticmethod
    def part(f, weight, norms, words, word):
        c0, c1 = norms[f.name]
        tf = word if isinstance(word, int) else words[f.name].count(word)
        return f32(f32(f32(weight) * tf) / f32(c0 + f32(c1 * len(words[f.name]))))

    def idf_of(self, df):
        n, df = float(len(self.documents)), float(df)
        if self.scorer in ('bm25', 'bm25:lucene'):
            return math.log(1.0 + (n - df + 0.5) / (df + 0.5))
        if self.scorer == 'bm25:atire':
            idf = math.log(n / df)
        else:
            idf = math.log((n - df + 0.5) / (df + 0.5))
            idf = max(1e-6, idf) if self.scorer == 'bm25:pisa' else max(0.0, idf)
        return idf * (f32(self.k1) + 1)

    def weight(self, word, qtf):
        if self.scoring == 'bm25f':
            return self.idf(word) * qtf * 2.0 ** -23
        return qtf * self.units[word]

    def lists(self, weights):
        """The lists whose sums count, one after the other; the greatest is the score."""
        if self.scoring != 'best':
            return [weights]
        ways = []
        for f in self.every:
            way = {}
            for word, qtf in weights.items():
                if ':' not in word and f in self.fields:
                    word = f.name + ':' + word
                if word.startswith(f.name + ':'):
                    way[word] = way.get(word, 0.0) + qtf
            ways.append(way)
        return ways

    def score(self, ways, impacts):
        return max(sum(max(1, round(f32(scaled * impacts[word]) * 2.0 ** -60))
                       for word, scaled in way.items() if word in impacts) for way in ways)

    def scores(self, weights, matches, k):
        """(exponent, [(sum, docid)]) of the documents that match, best first. weights: of the query's words."""
        known = sorted((w for w in weights if w in self.df), key=lambda w: (self.df[w], w))
        total = 0.0
        for word in known:
            total += self.weight(word, weights[word]) * max(i.get(word, 0) for i in self.impacts)
        m, e = math.frexp(total)
        exponent = 30 if not total > 0 else 31 - e if m == .5 else 30 - e
        ways = [{word: f32(math.ldexp(self.weight(word, qtf), exponent + 60)) for word, qtf in way.items()
                 if word in self.df} for way in self.lists({w: weights[w] for w in known})]
        hits = [(-self.score(ways, impacts), at) for at, impacts in enumerate(self.impacts) if matches(at)]
        return exponent, sorted(hits)[:k], len(hits)


def random_phrase(r, plain):
    """Its text, and a phrase."""
    words = r.choices(WORDS[:6], k=r.choice([2, 2, 2, 3]))
    kind, n = r.choice(['"', '"', '~'] if plain else ['"', '"', '~', 'NEAR', 'ONEAR']), 0
    text = '"%s"' % ' '.join(words)
    if kind == '~':
        kind, n = '"', r.randint(1, 4)
        text += '~%d' % n
    elif kind != '"':
        n = r.randint(2, 8)
        text = '%s/%d(%s)' % (kind, n, ' '.join(words))
    if kind == 'NEAR':
        return text, Phrase(kind, n, sorted((w, 0) for w in words))
    return text, Phrase(kind, n, [(w, i) for i, w in enumerate(words)])


def random_query(r, boolean, names, world):
    """text, weights of the words, what matches: has(word) -> bool. world: where there are phrases, else None"""
    a, b, c = r.sample(WORDS, 3)
    text = None
    if world and r.random() < .6:
        text, phrase = random_phrase(r, not boolean)
        if text not in world.phrases:
            world.add_phrase(text, phrase)
    if not boolean:
        words = r.choices(WORDS, k=r.randint(1, 5)) + [text] * (text is not None)
        r.shuffle(words)
        weights = {w: float(words.count(w)) for w in words}
        return ' '.join(words), weights, None
    if text:
        a, b, c = r.choice([(text, b, c), (a, text, c), (a, b, text)])
    f, g = r.choice(names), r.choice(names)
    fa, fb, gc = f + ':' + a, f + ':' + b, g + ':' + c
    return r.choice([
        (fa, {fa: 1.0}, lambda has: has(fa)),
        ('%s OR %s' % (fa, b), {fa: 1.0, b: 1.0}, lambda has: has(fa) or has(b)),
        ('+%s %s -%s' % (b, fa, gc), {b: 1.0, fa: 1.0}, lambda has: has(b) and not has(gc)),
        ('%s:(%s %s)^0.5 AND %s' % (f, a, b, c), {fa: .5, fb: .5, c: 1.0}, lambda has: (has(fa) or has(fb)) and has(c)),
        ('+%s %s' % (a, b), {a: 1.0, b: 1.0}, lambda has: has(a)),
        ('%s -%s' % (a, b), {a: 1.0}, lambda has: has(a) and not has(b)),
        ('%s AND %s' % (a, b), {a: 1.0, b: 1.0}, lambda has: has(a) and has(b)),
        ('(%s OR %s^2.5) AND NOT %s' % (a, b, c), {a: 1.0, b: 2.5}, lambda has: (has(a) or has(b)) and not has(c)),
        ('%s AND (%s OR %s)' % (a, b, c), {a: 1.0, b: 1.0, c: 1.0}, lambda has: has(a) and (has(b) or has(c)))])


def random_fields(r, names, b):
    fields = []
    for name in r.sample(names, r.randint(1, len(names))):
        own = float('%.3g' % r.random()) if r.random() < .4 else r.choice([b, b, 0.0, 1.0])
        fields.append(Field(name, r.choice([1.0, 1.0, 3.0, float('%.3g' % 10 ** r.uniform(-3, 3)), 0.0]), own))
    return fields


def ask(program, engine, r, index, documents, names, n, positions):
    scorer = r.choice(list(SCORERS))
    k1, b = SCORERS[scorer]
    k, op, syntax = r.choice([1, 3, 10, 1000]), r.choice(['or', 'or', 'and', 'and-or']), r.choice(['plain', 'boolean'])
    op = 'or' if syntax == 'boolean' else op
    command = [program, 'query', '-q', '--engine=' + engine, '-f', 'jsonl', '--explain', index, '--scorer=' + scorer,
               '--op=' + op, '-k', str(k), '--syntax=' + syntax, '--prune=' + r.choice(['on', 'on', 'off']),
               '--algorithm=' + r.choice(['auto', 'auto', 'taat', 'pmf', 'block-max'])]
    if r.random() < .4:
        k1 = r.choice([0.0, float('%.3g' % 10 ** r.uniform(-2, 2))])
        command += ['--k1=%r' % k1]
    if r.random() < .4:
        b = float('%.3g' % r.random())
        command += ['--b=%r' % b]
    fields, tells_b = random_fields(r, names, b), [False] * len(names)
    if r.random() < .1:
        fields, text = [Field(name, 1.0, b) for name in names], 'all'
    else:
        tells_b = [f.b != b or r.random() < .2 for f in fields]
        text = ','.join(f.name + ('^%r' % f.weight if f.weight != 1 or r.random() < .5 else '') +
                        (':b=%r' % f.b if tells else '') for f, tells in zip(fields, tells_b))
    command += ['--fields=' + text]
    scoring = r.choice(['bm25f', 'best', 'sum'])
    command += [] if scoring == 'bm25f' and r.random() < .5 else ['--field-scoring=' + scoring]
    year = None
    if r.random() < .3:
        year = r.randint(2000, 2009)
        command += ['--filter=year:>=%d' % year]
    for f, tells in zip(fields, tells_b):
        f.b = f.b if tells else f32(f.b)  # an option is a float
    world = World(documents, names, fields, k1, f32(b), scoring, scorer)
    queries = [random_query(r, syntax == 'boolean', names, world if positions else None) for _ in range(n)]
    got = run(command, ''.join(q[0] + '\n' for q in queries)).splitlines()
    for (query, weights, matches), line in zip(queries, got):
        answer = json.loads(line)

        def allowed(at, whole):
            has = lambda word: word in world.impacts[at]
            if year is not None and world.documents[at]['year'] < year:
                return False
            if matches:
                return matches(has)
            return (all if whole else any)(has(word) for word in weights)

        want = world.scores(weights, lambda at: allowed(at, op != 'or'), k)
        if op == 'and-or' and not matches and want[2] < k:
            want = world.scores(weights, lambda at: allowed(at, False), k)
        have = [(-h['explain']['sum'], h['docid']) for h in answer['hits']]
        right = [(s, at) for s, at in want[1]]
        scores = [float('%.11g' % math.ldexp(-s, -want[0])) for s, _ in right]
        if have != right or [h['score'] for h in answer['hits']] != scores or answer['matches'] != want[2]:
            sys.exit('%s\n%s\n%r is shown, and %r is right; %r matches, and %r' % (
                ' '.join(command), query, have, right, answer['matches'], want[2]))


def main():
    p = argparse.ArgumentParser()
    p.add_argument('program')
    p.add_argument('--cases', type=int, default=400)
    p.add_argument('--seed', type=int, default=random.randrange(2 ** 32))
    p.add_argument('--engine', default='cpu')
    a = p.parse_args()
    print('seed %d' % a.seed, flush=True)
    r, done, program = random.Random(a.seed), 0, os.path.abspath(a.program)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        while done < a.cases:
            os.mkdir(str(done))
            indexes, positions = build(program, r, os.path.join(folder, str(done)))
            for index, documents, names in indexes:
                for _ in range(4):
                    ask(program, a.engine, r, index, documents, names, 10, positions and a.engine == 'cpu')
                    done += 10
    print('%d cases' % done)


if __name__ == '__main__':
    main()
