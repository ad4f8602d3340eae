#!/usr/bin/env python3
"""groups.py: words that count as one word find and score what brute force on the texts does, to the bit.

    groups.py GPUIDX [--cases N] [--seed S] [--engine E]

Patterns (r1*, r?, /r[1-3]/) by each way of scoring, phrases whose last word is a prefix, synonyms, and query-side
weights, on an index file and a collection of 8 segments with deletes, as phrases.py makes them. A case is a query. The
seed is printed."""
import argparse
import json
import math
import os
import random
import re
import sys
import tempfile

from phrases import RARE, STOP, WORDS, B, Collection, Phrase, Query, build, f32, random_phrase, run

NOTHING = 'no-such-word'


class Group:
    """kind: 'any' or 'constant'."""

    def __init__(self, kind, words):
        self.kind, self.words = kind, sorted(set(words))
        self.key = (kind, tuple(self.words))

    def text(self):
        return '%s(%s)' % (self.kind, ' '.join(self.words))

    def tf(self, document):
        return sum(document.terms.count(w) for w in self.words)

    def idf(self, c):
        if self.kind == 'constant':
            return 1.0
        return least_idf(c, self.words)


def least_idf(c, words):
    return c.idf(max(words, key=lambda w: c.df.get(w, 0)))


class PrefixPhrase(Phrase):
    """A phrase in a row whose last place has several words."""

    def __init__(self, words, others):
        super().__init__('"', 0, words)
        self.others = others
        self.key += (tuple(others),)

    def text(self):
        return super().text()[:-1] + ''.join('|' + w for w in self.others) + '"'

    def tf(self, document):
        n = 0
        for places in document.parts:
            last, offset = self.words[-1]
            joined = dict(places)
            joined['last*'] = sorted({p for w in [last] + self.others for p in places.get(w, [])})
            n += len({at[0] for at in Phrase('"', 0, self.words[:-1] + [('last*', offset)]).placed(joined, [])})
        return n

    def idf(self, c):
        total = 0.0
        for w, _ in self.words[:-1]:
            total += c.idf(w)
        return total + least_idf(c, [self.words[-1][0]] + self.others)


class GroupQuery(Query):
    def __init__(self, collection, node, op):
        self.c, self.node, self.op = collection, node, op
        self.scored, self.cache, self.weights = {}, {}, {}
        self.collect(node, 1, False)
        for what, (leaf, weights) in self.scored.items():
            weight = sum(sorted(weights))
            if isinstance(leaf, (Group, PrefixPhrase)):
                known = any(w in self.c.df for w in leaf.words) if isinstance(leaf, Group) else \
                    all(w in self.c.df for w, _ in leaf.words[:-1]) and \
                    any(w in self.c.df for w in [leaf.words[-1][0]] + leaf.others)
                if known:
                    self.weights[what] = leaf.idf(self.c) * weight
                continue
            words = [leaf] if isinstance(leaf, str) else [w for w, _ in leaf.words]
            if all(w in self.c.df for w in words):
                idf = 0.0
                for w in words:
                    idf += self.c.idf(w)
                self.weights[what] = idf * weight
        self.scale()

    def scale(self):
        total = sum(self.weights.values())
        mantissa, exponent = math.frexp(total)
        self.exponent = 30 if total <= 0 else 31 - exponent if mantissa == .5 else 30 - exponent
        self.w = {what: f32(math.ldexp(x, self.exponent)) for what, x in self.weights.items()}
        k1, b = f32(.9), f32(B)
        self.c0, self.c1 = f32(k1 * (1 - b)), f32(k1 * b / self.c.avgdl)

    def impact(self, what, leaf, d):
        tf = self.tf(leaf, d) if what in self.w else 0
        if tf == 0:
            return 0
        if isinstance(leaf, Group) and leaf.kind == 'constant':
            return round(self.w[what])
        K = f32(self.c0 + f32(self.c1 * d.length))
        return max(1, round(f32(f32(self.w[what] * tf) / f32(tf + K))))

    def score(self, d):
        return sum(self.impact(what, leaf, d) for what, (leaf, _) in self.scored.items())

    def explained(self, d):
        out = []
        for what, (leaf, _) in self.scored.items():
            if what in self.w and not isinstance(leaf, str) and ' ' in leaf.text():
                df = max(self.c.df.get(w, 0) for w in leaf.words) if isinstance(leaf, Group) else \
                    sum(self.tf(leaf, x) > 0 for x in self.c.documents)
                out.append((leaf.text(), df, self.tf(leaf, d), self.impact(what, leaf, d)))
        return sorted(out)


# ---- patterns ----

def expansion(c, form, most):
    found = [w for w in c.df if re.fullmatch(form, w)]
    return sorted(found, key=lambda w: (-c.df[w], w))[:most]


def random_pattern(r, c, scoring, most):
    """(node, text)"""
    text, form = r.choice([('r*', 'r.*'), ('r1*', 'r1.*'), ('r2*', 'r2.*'), ('r?', 'r.'), ('?', '.') if False else
                           ('r?3', 'r.3'), ('/[a-c]/', '[a-c]'), ('/r[0-4]+/', 'r[0-4]+'), ('/[gh]|r3./', '[gh]|r3.'),
                           ('r9*', 'r9.*'), ('rr*', 'rr.*'), ('*7', '.*7')])
    words = expansion(c, form, most)
    boost = r.choice([1, 1, 1, 2, .5])
    said = text + ('^%g' % boost if boost != 1 else '')
    if not words:
        return ('leaf', NOTHING, boost), said
    if scoring == 'constant':
        return ('leaf', Group('constant', words), boost), said
    if len(words) == 1:
        return ('leaf', words[0], boost), said
    if scoring == 'one':
        return ('leaf', Group('any', words), boost), said
    return ('or', [('leaf', w, 1) for w in words], boost), said


def random_prefix_phrase(r, c, most):
    text = r.choice(c.documents).text if c.documents else []
    if r.random() < .6 and len(text) > 2:
        n = r.randint(1, 3)
        at = r.randint(0, max(0, len(text) - n - 1))
        said = text[at:at + n]
    else:
        said = [r.choice(WORDS + STOP) for _ in range(r.randint(1, 3))]
    prefix = r.choice(['r', 'r', 'r1', 'r2', 'a', 'b', 'rr'])
    kept = [(w, i) for i, w in enumerate(said) if w not in STOP]
    words = expansion(c, prefix + '.*', most)
    said = '"%s %s*"' % (' '.join(said), prefix)
    if not words:
        return ('leaf', Group('any', [NOTHING, NOTHING + '2']), 1), said
    if not kept:
        return ('leaf', words[0] if len(words) == 1 else Group('any', words), 1), said
    first = kept[0][1]
    kept = [(w, i - first) for w, i in kept] + [(words[0], said.count(' ') - first)]
    return ('leaf', PrefixPhrase(kept, words[1:]) if len(words) > 1 else Phrase('"', 0, kept), 1), said


# ---- synonyms ----

def random_rules(r):
    """({entry: [entries]}, the file)"""
    rules, lines = {}, ['# a comment', '']
    entries = [(w,) for w in WORDS + RARE[:12]] + [('unheard',)]
    entries += [tuple(r.choice(WORDS) for _ in range(r.randint(2, 3))) for _ in range(6)]
    turned = set()
    for _ in range(r.randint(1, 6)):
        left = r.sample(entries, r.randint(1, 2))
        right = r.sample(entries, r.randint(1, 4))
        if r.random() < .5:
            left = right = r.sample(entries, r.randint(2, 4))
            lines.append(', '.join(' '.join(e) for e in left))
        else:
            left = [e for e in left if e not in turned]
            if not left:
                continue
            right = [e for e in right if e not in left]  # one direction alone: turned entries come from nothing turned
            right = [e for e in right if e not in turned]
            if not right:
                continue
            turned.update(left)
            turned.update(right)
            lines.append(' , '.join(' '.join(e) for e in left) + ' =>' + ','.join(' '.join(e) for e in right))
        for e in left:
            rules.setdefault(e, set()).update(right)
    return rules, '\n'.join(lines) + '\n'


def replaced(entries):
    singles = [e[0] for e in entries if len(e) == 1]
    nodes = [('leaf', Group('any', singles) if len(singles) > 1 else singles[0], 1)] if singles else []
    for e in sorted(e for e in entries if len(e) > 1):
        nodes.append(('leaf', Phrase('"', 0, [(w, i) for i, w in enumerate(e)]), 1))
    return nodes[0] if len(nodes) == 1 else ('or', nodes, 1)


def plain_with(rules, words):
    nodes, at = [], 0
    words = [w for w in words if w not in STOP]
    while at < len(words):
        for n in range(min(4, len(words) - at), 0, -1):
            if tuple(words[at:at + n]) in rules:
                nodes.append(replaced(rules[tuple(words[at:at + n])]))
                at += n
                break
        else:
            nodes.append(('leaf', words[at], 1))
            at += 1
    return nodes


# ---- query-side weights ----

class WeighedQuery(GroupQuery):
    def __init__(self, c, words, op, k1, b):
        words = [w for w in words if w not in STOP]
        super().__init__(c, ('clauses', [('', ('leaf', w, 1)) for w in words], 1), op)
        K = k1 * (1 - b + b * len(words) / c.avgdl)
        self.weights = {w: c.idf(w) * (c.idf(w) * (words.count(w) / (words.count(w) + K)))
                        for w in set(words) if w in c.df}
        self.scale()


# ---- cases ----

def check(command, texts, queries, c, k, filtered, explain):
    lines = run(command, ''.join(t + '\n' for t in texts)).splitlines()
    for text, q, line in zip(texts, queries, lines):
        answer = json.loads(line)
        want = q.answers(lambda d: not filtered or d.year > 2003, k)
        shown = [(float('%.11g' % math.ldexp(-s, -q.exponent)), i) for s, _, i in want[:k]]
        got = [(h['score'], h['id']) for h in answer['hits']]
        for (_, i, name), hit in zip(want, answer['hits'] if explain else []):
            told = sorted((t['term'], t['df'], t['tf'], t['impact'])
                          for t in hit['explain']['terms'] if ' ' in t['term'])
            if told != q.explained(c.documents[i]) or hit['id'] != name:
                sys.exit('%s\n%s\n%r is told,\n%r is right' %
                         (' '.join(command), text, told, q.explained(c.documents[i])))
        if got != shown or answer['matches'] != len(want):
            sys.exit('%s\n%s\nmatches %d, %d are right\n%r is shown,\n%r is right' %
                     (' '.join(command), text, answer['matches'], len(want), got, shown))


def leaf_of(r, c, scoring, most):
    x = r.random()
    if x < .35:
        return random_pattern(r, c, scoring, most)
    if x < .65 and c.documents:
        return random_prefix_phrase(r, c, most)
    if x < .8 and c.documents:
        leaf, text = random_phrase(r, c.documents)
        return ('leaf', leaf, 1), text
    word = r.choice(WORDS + RARE)
    return ('leaf', word, 1), word


def ask(program, engine, r, c, n):
    op, k, filtered = r.choice(['or', 'or', 'and']), r.choice([1, 3, 10, 1000]), r.random() < .3
    explain = k <= 3 and r.random() < .6
    command = [program, 'query', '-q', '--engine=' + engine, '-f', 'jsonl', '--op=' + op, '-k', str(k), c.path]
    command += ['--filter=year:>2003'] if filtered else []
    command += ['--prune=off'] if r.random() < .1 else []
    command += ['--explain'] if explain else []
    kind, texts, queries = r.choice(['patterns', 'patterns', 'synonyms', 'weights']), [], []
    if kind == 'patterns':
        scoring, most = r.choice(['each', 'one', 'one', 'constant']), r.choice([1, 3, 50])
        command += ['--syntax=boolean', '--expansion-scoring=' + scoring, '--max-expansions=%d' % most]
        for _ in range(n):
            leaves = [leaf_of(r, c, scoring, most) for _ in range(r.randint(1, 3))]
            signs = [r.choice(['', '', '', '+', '-']) if i else r.choice(['', '', '+']) for i in range(len(leaves))]
            if r.random() < .3:
                word = r.choice(['and', 'or'])
                queries.append(GroupQuery(c, (word, [node for node, _ in leaves], 1), op))
                texts.append((' %s ' % word.upper()).join(text for _, text in leaves))
            else:
                queries.append(GroupQuery(c, ('clauses', list(zip(signs, (x for x, _ in leaves))), 1), op))
                texts.append(' '.join(s + t for s, (_, t) in zip(signs, leaves)))
    elif kind == 'synonyms':
        rules, file = random_rules(r)
        with open('rules.txt', 'w', encoding='utf-8') as f:
            f.write(file)
        command += ['--synonyms=rules.txt']
        boolean = r.random() < .4
        command += ['--syntax=boolean'] if boolean else []
        for _ in range(n):
            said = [r.choice(WORDS + RARE[:12] + STOP) for _ in range(r.randint(1, 5))]
            if rules and r.random() < .7:
                at = r.randint(0, len(said))
                said[at:at] = list(r.choice(sorted(rules)))
            if boolean:
                nodes = [(replaced(rules[(w,)]) if (w,) in rules else ('leaf', w, 1)) for w in said if w not in STOP]
                said = [w for w in said if w not in STOP]
                long = [e for e in sorted(rules) if len(e) > 1]
                if long and r.random() < .5:
                    e = r.choice(long)
                    nodes.append(replaced(rules[e]))
                    said.append('"%s"' % ' '.join(e))
            else:
                nodes = plain_with(rules, said)
            if not nodes:
                continue
            texts.append(' '.join(said))
            queries.append(GroupQuery(c, ('clauses', [('', x) for x in nodes], 1), op))
    else:
        k1, b = r.choice([0, .9, 2.5]), r.choice([0, .4, 1])
        command += ['--query-k1=%g' % k1, '--query-b=%g' % b]
        for _ in range(n):
            said = [r.choice(WORDS + RARE + STOP) for _ in range(r.randint(1, 30))] + ['a']
            texts.append(' '.join(said))
            queries.append(WeighedQuery(c, said, op, f32(k1), f32(b)))
    check(command, texts, queries, c, k, filtered, explain)


def main():
    p = argparse.ArgumentParser()
    p.add_argument('program')
    p.add_argument('--cases', type=int, default=400)
    p.add_argument('--seed', type=int, default=random.randrange(2 ** 32))
    p.add_argument('--engine', default='cpu')
    a = p.parse_args()
    print('seed %d' % a.seed)
    r, done, program = random.Random(a.seed), 0, os.path.abspath(a.program)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        while done < a.cases:
            os.mkdir(str(done))
            for c in build(program, r, os.path.join(folder, str(done))):
                assert isinstance(c, Collection)
                for _ in range(6):
                    ask(program, a.engine, r, c, 15)
                    done += 15
    print('%d cases, 0 differ' % done)


if __name__ == '__main__':
    main()
