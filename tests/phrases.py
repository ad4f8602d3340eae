#!/usr/bin/env python3
"""phrases.py: phrases, windows and pairs find and score what brute force on the texts does, to the bit.

    phrases.py GPUIDX [--cases N] [--seed S] [--engine E]

Random documents become an index file, and the same documents, some of them deleted, a collection of 8 segments. Random
queries of words, phrases, slops and windows in every operator, with weights and filters, and plain ones with --sdm, are
asked of both, and of all results the documents, their order, their scores and their number are compared with what this
program finds in the texts. A case is a query. The seed is printed."""
import argparse
import json
import math
import os
import random
import struct
import subprocess
import sys
import tempfile

WORDS = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
RARE = ['r%d' % i for i in range(40)]
STOP = ['the', 'of']
K1, B = .9, .4  # bm25


def run(command, text=None):
    done = subprocess.run(command, capture_output=True, input=text, encoding='utf-8')
    if done.returncode:
        sys.exit('%s: exit %d: %s\n%s' % (' '.join(command), done.returncode, done.stderr, text))
    return done.stdout


def f32(x):
    return struct.unpack('f', struct.pack('f', x))[0]


# ---- documents ----

def random_text(r, most):
    n = r.randint(0, most)
    words = []
    while len(words) < n:
        if words and r.random() < .2:
            at = r.randrange(len(words))
            words += words[at:at + r.randint(1, 4)]  # what was said before
        else:
            words.append(r.choice(WORDS + WORDS[:2] + STOP) if r.random() < .93 else r.choice(RARE))
    return words[:n]


class Document:
    def __init__(self, r, number, most):
        self.id, self.year = 'd%d' % number, r.randint(2000, 2009)
        self.title, self.text = random_text(r, 6) if r.random() < .6 else [], random_text(r, most)
        self.parts = []  # of the title and the text: the positions of each word
        for words in (self.title, self.text):
            places = {}
            for i, w in enumerate(words):
                places.setdefault(w, []).append(i)
            self.parts.append(places)
        self.terms = [w for w in self.title + self.text if w not in STOP]
        self.length = len(self.terms)


class Collection:
    """The documents of an index, in order."""

    def __init__(self, path, documents):
        self.path, self.documents, self.n = path, documents, len(documents)
        self.avgdl = sum(d.length for d in documents) / self.n if self.n else 1
        self.avgdl = self.avgdl or 1
        self.df = {}
        for d in documents:
            for w in set(d.terms):
                self.df[w] = self.df.get(w, 0) + 1

    def idf(self, word):
        return math.log(1.0 + (self.n - self.df[word] + 0.5) / (self.df[word] + 0.5))


def build(program, r, folder):
    n = r.choice([8, 40, 120])
    most = r.choice([8, 30, 80])
    documents = [Document(r, i, most) for i in range(n)]
    with open('stop.txt', 'w', encoding='utf-8') as f:
        f.write('\n'.join(STOP) + '\n')
    cuts = sorted(r.sample(range(1, n), 7))
    parts = []
    for i, (a, b) in enumerate([(0, n)] + list(zip([0] + cuts, cuts + [n]))):
        with open('part.jsonl', 'w', encoding='utf-8') as f:
            f.writelines(json.dumps({'id': d.id, 'year': d.year, 'title': ' '.join(d.title),
                                     'text': ' '.join(d.text)}) + '\n' for d in documents[a:b])
        parts.append(os.path.join(folder, '%d.gx' % i))
        run([program, 'build', '-q', 'part.jsonl', '-o', parts[-1], '--positions', '--attr=year:int',
             '--analyzer=simple', '--stopwords=stop.txt'])
    many = os.path.join(folder, 'many')
    run([program, 'collect', '-q'] + parts[1:] + ['-o', many])
    gone = set(r.sample([d.id for d in documents], n // 5))
    with open('gone.txt', 'w', encoding='utf-8') as f:
        f.writelines(i + '\n' for i in sorted(gone))
    run([program, 'delete', '-q', many, '--ids=gone.txt', '--merge=none'])
    return [Collection(parts[0], documents), Collection(many, [d for d in documents if d.id not in gone])]


# ---- phrases ----

class Phrase:
    """kind: '"', 'NEAR' or 'ONEAR'. words: (word, offset)."""

    def __init__(self, kind, n, words):
        self.kind, self.n, self.words = kind, n, words
        self.key = (kind, n, tuple(sorted(words) if kind == 'NEAR' else words))

    def text(self):
        """As --explain shows it."""
        words, last = [], self.words[0][1]
        for word, offset in self.words:
            words += ['_'] if offset > last + 1 else []
            words.append(word)
            last = offset
        if self.kind != '"':
            return '%s/%d(%s)' % (self.kind, self.n, ' '.join(words))
        return '"%s"' % ' '.join(words) + ('~%d' % self.n if self.n else '')

    def placed(self, places, at):
        """All ways to place the words from the len(at)-th on, those before being at `at`."""
        if len(at) == len(self.words):
            yield at
            return
        word, offset = self.words[len(at)]
        for p in places.get(word, []):
            if self.kind == 'ONEAR':
                good = not at or 0 < p - at[-1] <= self.n
            else:
                reach = self.n if self.kind == '"' else self.n - 1
                good = p not in at and all(abs(p - offset - q + o) <= reach for q, (_, o) in zip(at, self.words))
            if good:
                yield from self.placed(places, at + [p])

    def tf(self, document):
        """The different places at which a match begins."""
        return sum(len({at[0] if self.kind == 'ONEAR' else min(p - o for p, (_, o) in zip(at, self.words))
                        for at in self.placed(places, [])}) for places in document.parts)


def random_phrase(r, documents):
    """A word or a phrase, and how the query says it."""
    while True:
        n = r.choice([2, 2, 2, 3, 3, 4])
        said = [r.choice(WORDS + STOP) for _ in range(n)]
        if r.random() < .7:
            text = r.choice(documents).text
            if len(text) >= n:
                at = r.randint(0, len(text) - n)
                said = text[at:at + n]
        if r.random() < .2:
            r.shuffle(said)
        if r.random() < .03:
            said[r.randrange(n)] = 'unheard'
        kept = [(w, i) for i, w in enumerate(said) if w not in STOP]
        if kept:
            break
    first = kept[0][1]
    kept = [(w, i - first) for w, i in kept]
    kind, number, text = r.choice(['"', '"', '~', 'NEAR', 'ONEAR']), 0, '"%s"' % ' '.join(said)
    if kind == '~':
        kind, number = '"', r.randint(0, 6)
        text += '~%d' % number
    elif kind != '"':
        number = r.randint(1, 8)
        text = '%s/%d(%s)' % (kind, number, ' '.join(said))
    if kind == 'NEAR':
        kept = sorted((w, 0) for w, _ in kept)
    elif kind == 'ONEAR':
        kept = [(w, i) for i, (w, _) in enumerate(kept)]
    return (kept[0][0] if len(kept) == 1 else Phrase(kind, number, kept)), text


# ---- queries: (kind, what, boost) ----

def random_leaf(r, documents):
    if r.random() < .5:
        word = r.choice(WORDS) if r.random() < .8 else r.choice(RARE + ['unheard'])
        return word, word
    return random_phrase(r, documents)


def random_node(r, documents, depth):
    """(node, text) where a node is ('leaf', word or phrase, boost) or (kind, children, boost)."""
    if depth == 0 or r.random() < .45:
        leaf, text = random_leaf(r, documents)
        boost = r.choice([1, 1, 1, 2, .5, 3])
        return ('leaf', leaf, boost), text + ('^%g' % boost if boost != 1 else '')
    kind = r.choice(['and', 'or', 'clauses'])
    boost = r.choice([1, 1, 2])
    node, text = random_clauses(r, documents, depth - 1) if kind == 'clauses' else \
        random_operands(r, documents, depth - 1, kind)
    return (node[0], node[1], boost), '(%s)' % text + ('^%g' % boost if boost != 1 else '')


def random_operands(r, documents, depth, kind):
    children = [random_node(r, documents, depth) for _ in range(r.randint(2, 3))]
    nodes, texts = [], []
    for i, (node, text) in enumerate(children):
        if i and r.random() < .2:
            node, text = ('not', [node], 1), 'NOT ' + text
        nodes.append(node)
        texts.append(text)
    return (kind, nodes, 1), (' %s ' % kind.upper()).join(texts)


def random_clauses(r, documents, depth):
    children = [random_node(r, documents, depth) for _ in range(r.randint(1, 4))]
    signs = [r.choice(['', '', '', '+', '-']) for _ in children]
    signs[0] = r.choice(['', '', '+'])
    return ('clauses', list(zip(signs, (node for node, _ in children))), 1), \
        ' '.join(s + text for s, (_, text) in zip(signs, children))


def random_dependent(r, documents, weights, quoted):
    """A plain query of words and phrases, whose neighbouring words are pairs that score, signed '~'. quoted: phrases
    are phrases, else words."""
    nodes, texts, before = [], [], None  # before: the word before, and how many stop words are behind it
    for _ in range(r.randint(1, 5)):
        leaf, text = random_phrase(r, documents) if r.random() < .2 else (None, None)
        if leaf is not None and text[0] == '"' and '~' not in text:
            texts.append(text)
            if quoted:
                nodes.append(('', ('leaf', leaf, f32(weights[0]))))
                before = None
                continue
        elif r.random() < .15:
            texts.append(r.choice(STOP))
        else:
            texts.append(r.choice(WORDS) if r.random() < .8 else r.choice(RARE + ['unheard']))
        for word in texts[-1].strip('"').split():
            if word in STOP:
                before = before and (before[0], before[1] + 1)
                continue
            nodes.append(('', ('leaf', word, f32(weights[0]))))
            if before and weights[1]:
                pair = Phrase('"', 0, [(before[0], 0), (word, before[1] + 1)])
                nodes.append(('~', ('leaf', pair, f32(weights[1]))))
            if before and weights[2]:
                pair = Phrase('NEAR', 8, sorted([(before[0], 0), (word, 0)]))
                nodes.append(('~', ('leaf', pair, f32(weights[2]))))
            before = word, 0
    return ('clauses', nodes, 1), ' '.join(texts)


class Query:
    def __init__(self, collection, node, op):
        self.c, self.node, self.op = collection, node, op
        self.scored = {}  # of words and phrases: their weights
        self.collect(node, 1, False)
        self.cache = {}
        total, self.weights = 0, {}
        for what, (leaf, weights) in self.scored.items():
            weight = sum(sorted(weights))
            words = [leaf] if isinstance(leaf, str) else [w for w, _ in leaf.words]
            if all(w in self.c.df for w in words):
                idf = 0.0
                for w in words:
                    idf += self.c.idf(w)
                self.weights[what] = idf * weight
                total += idf * weight
        mantissa, exponent = math.frexp(total)
        self.exponent = 30 if total <= 0 else 31 - exponent if mantissa == .5 else 30 - exponent
        self.w = {what: f32(math.ldexp(x, self.exponent)) for what, x in self.weights.items()}
        k1, b = f32(K1), f32(B)
        self.c0, self.c1 = f32(k1 * (1 - b)), f32(k1 * b / self.c.avgdl)

    @staticmethod
    def what(leaf):
        return leaf if isinstance(leaf, str) else leaf.key

    def collect(self, node, boost, negated):
        kind, inner, own = node
        if kind == 'leaf':
            if not negated:
                self.scored.setdefault(self.what(inner), (inner, []))[1].append(boost * own)
            return
        for child in inner:
            sign, child = child if kind == 'clauses' else ('', child)
            self.collect(child, boost * own, negated or kind == 'not' or sign == '-')

    def tf(self, leaf, d):
        key = (self.what(leaf), d.id)
        if key not in self.cache:
            self.cache[key] = d.terms.count(leaf) if isinstance(leaf, str) else leaf.tf(d)
        return self.cache[key]

    def holds(self, node, d, op):
        kind, inner, _ = node
        if kind == 'leaf':
            return self.tf(inner, d) > 0
        if kind == 'not':
            return not self.holds(inner[0], d, op)
        if kind == 'and':
            return all(self.holds(x, d, op) for x in inner)
        if kind == 'or':
            return any(self.holds(x, d, op) for x in inner)
        optional = [self.holds(x, d, op) for sign, x in inner if not sign]
        good = all(self.holds(x, d, op) == (sign == '+') for sign, x in inner if sign in '+-' and sign)
        if good and optional and not any(sign == '+' for sign, _ in inner):
            good = all(optional) if op == 'and' else any(optional)
        return good

    def score(self, d):
        K = f32(self.c0 + f32(self.c1 * d.length))
        total = 0
        for what, (leaf, _) in self.scored.items():
            tf = self.tf(leaf, d) if what in self.w else 0
            if tf:
                total += max(1, round(f32(f32(self.w[what] * tf) / f32(tf + K))))
        return total

    def explained(self, d):
        """Of the phrases: text, df, tf, impact."""
        K = f32(self.c0 + f32(self.c1 * d.length))
        out = []
        for what, (leaf, _) in self.scored.items():
            if what in self.w and not isinstance(leaf, str):
                tf = self.tf(leaf, d)
                out.append((leaf.text(), sum(self.tf(leaf, x) > 0 for x in self.c.documents), tf,
                            max(1, round(f32(f32(self.w[what] * tf) / f32(tf + K)))) if tf else 0))
        return sorted(out)

    def answer(self, selects, op):
        found = []
        for i, d in enumerate(self.c.documents):
            if selects(d) and self.holds(self.node, d, op):
                score = self.score(d)
                if score:
                    found.append((-score, i, d.id))
        return sorted(found)

    def answers(self, selects, k):
        """All that match, best first."""
        if self.op != 'and-or':
            return self.answer(selects, self.op)
        found = self.answer(selects, 'and')
        return found if len(found) >= k else self.answer(selects, 'or')


def ask(program, engine, r, c, n):
    op, k, least = r.choice(['or', 'or', 'and', 'and-or']), r.choice([1, 3, 10, 1000]), r.randint(1999, 2008)
    plain, weights, quoted = r.random() < .3, None, True
    if plain and op != 'and-or' and r.random() < .6:
        weights, quoted = r.choice([(.85, .1, .05), (.85, .1, .05), (1, 0, 2), (.3, 3, 0)]), r.random() < .7
    command = [program, 'query', '-q', '--engine=' + engine, '-f', 'jsonl', '--op=' + op, '-k', str(k), c.path]
    command += [] if plain else ['--syntax=boolean']
    if weights:
        command += ['--sdm=' + (','.join('%g' % w for w in weights)), '--quotes=' + ('phrase' if quoted else 'words')]
    filtered = r.random() < .3
    if filtered:
        command += ['--filter=year:>%d' % least]
    if r.random() < .1:
        command += ['--prune=off']
    explain = k <= 3 and r.random() < .5
    command += ['--explain'] if explain else []
    nodes = []
    for _ in range(n):
        if weights:
            nodes.append(random_dependent(r, c.documents or [Document(r, 0, 9)], weights, quoted))
        elif plain or op == 'and-or':
            leaves = [random_leaf(r, c.documents or [Document(r, 0, 9)]) for _ in range(r.randint(1, 3))]
            if plain:
                leaves = [(leaf, text) for leaf, text in leaves if '/' not in text] or [('a', 'a')]
            node = ('clauses', [('', ('leaf', leaf, 1)) for leaf, _ in leaves], 1)
            nodes.append((node, ' '.join(text for _, text in leaves)))
        else:
            nodes.append(random_clauses(r, c.documents, 2) if r.random() < .6 else random_node(r, c.documents, 1))
    lines = run(command, ''.join(text + '\n' for _, text in nodes)).splitlines()
    for (node, text), line in zip(nodes, lines):
        answer = json.loads(line)
        q = Query(c, node, op)
        want = q.answers(lambda d: not filtered or d.year > least, k)
        shown = [(float('%.11g' % math.ldexp(-s, -q.exponent)), i) for s, _, i in want[:k]]
        got = [(h['score'], h['id']) for h in answer['hits']]
        for (_, i, name), hit in zip(want, answer['hits'] if explain and op != 'and-or' else []):
            told = sorted((t['term'], t['df'], t['tf'], t['impact'])
                          for t in hit['explain']['terms'] if ' ' in t['term'])
            if told != q.explained(c.documents[i]) or hit['id'] != name:
                sys.exit('%s\n%s\n%r is told,\n%r is right' %
                         (' '.join(command), text, told, q.explained(c.documents[i])))
        if got != shown or answer['matches'] != len(want):
            sys.exit('%s\n%s\nmatches %d, %d are right\n%r is shown,\n%r is right' %
                     (' '.join(command), text, answer['matches'], len(want), got, shown))


def main():
    p = argparse.ArgumentParser()
    p.add_argument('program')
    p.add_argument('--cases', type=int, default=800)
    p.add_argument('--seed', type=int, default=random.randrange(2 ** 32))
    p.add_argument('--engine', default='cpu')
    a = p.parse_args()
    print('seed %d' % a.seed)
    r, done, program = random.Random(a.seed), 0, os.path.abspath(a.program)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        while done < a.cases:
            os.mkdir(str(done))
            collections = build(program, r, os.path.join(folder, str(done)))
            for _ in range(4):
                for c in collections:
                    ask(program, a.engine, r, c, 25)
                    done += 25
    print('%d cases, 0 differ' % done)


if __name__ == '__main__':
    main()
