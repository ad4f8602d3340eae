#!/usr/bin/env python3
"""positions.py: an index gives back where each word of random documents stands, however it was made or made anew.

    positions.py GPUIDX [--rounds N] [--seed S]

A round writes random documents, some longer than what is analysed at once, some empty, many with titles, and builds
them with little memory (many runs), with several threads, with other orders, codecs and duplicates; then makes each
index anew (recode, reorder), cuts the documents into parts of a collection (collect), and changes a collection (add,
update, delete, merge). Of each index `check` finds no damage, and `term --positions` gives the positions of all words
that this program counts. The seed is printed."""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile

WORDS = ['w%d' % i for i in range(500)]
STOP = ['the', 'of', 'and']


def fail(text):
    sys.exit('positions.py: ' + text)


class Round:
    def __init__(self, gpuidx, seed, folder):
        self.gpuidx, self.r, self.folder = gpuidx, random.Random(seed), folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, *args, code=0):
        done = subprocess.run([self.gpuidx, *args], capture_output=True, text=True)
        if done.returncode != code:
            fail('%s ends with %d, not %d: %s' % (' '.join(args)[:300], done.returncode, code, done.stderr[-500:]))
        return done.stdout if code == 0 else done.stderr

    def words(self, n):
        return [self.r.choice(STOP) if self.r.random() < .2 else WORDS[min(int(self.r.expovariate(1 / 40)), 499)]
                for _ in range(n)]

    def document(self):
        return self.words(self.r.choice([0, 0, 3, 8])), self.words(self.r.choice([0, 5, 40, 120]))

    def write(self, documents):
        path = self.path('docs.tsv')
        with open(path, 'w') as f:
            for name, (title, text) in documents:
                f.write('%s\t%s\t%s\n' % (name, ' '.join(title), ' '.join(text)))
        return path

    def compare(self, index, documents, what):
        expected = {}
        for name, (title, text) in documents.items():
            for at, word in enumerate(title + text):
                if word not in STOP:
                    expected.setdefault(word, {}).setdefault(name, []).append(at)
        self.run('check', index)
        terms = sorted(expected)
        lines = self.run('term', index, '--as-is', '-n', '4294967295', '--positions', '-f', 'json', *terms).splitlines()
        found = {}
        for line in lines:
            term = json.loads(line)
            found[term['term']] = {p['id']: p['positions'] for p in term['postings']}
            if any(p['tf'] != len(p['positions']) for p in term['postings']):
                fail('%s: tfs are not the numbers of positions' % what)
        for term in terms:
            if found.get(term) != expected[term]:
                fail('%s: %s differs' % (what, term))
        return len(terms)

    def build(self, documents, name, *flags):
        out = self.path(name)
        self.run('build', self.write(documents), '--columns=id,title,text', '--stemmer=none', '--positions', '--force',
                 '-q', '-o', out, *flags)
        return out

    def files(self, documents):
        r, lines, n = self.r, list(documents.items()), 0
        whole = self.build(lines, 'whole.gx', *r.choice([[], ['-m', '1M'], ['-j', '4', '-m', '4M']]))
        n += self.compare(whole, documents, 'build')
        for flags in (['-m', '1M', '-j', '2'], ['-j', '3', '--store=text'], ['--order=random'], ['--order=bp']):
            n += self.compare(self.build(lines, 'other.gx', *flags), documents, 'build ' + ' '.join(flags))
        again, changed = [], dict(documents)
        for name in r.sample(sorted(documents), len(documents) // 4):
            changed[name] = self.document()
            again.append((name, changed[name]))
        last = self.build(lines + again, 'last.gx', '--duplicates=last', *r.choice([[], ['-j', '2']]))
        n += self.compare(last, changed, 'build --duplicates=last')
        made = self.path('made.gx')
        for command in (['recode', '--codec=' + r.choice(['auto', 'rice', 'raw', 'lane1024'])],
                        ['recode', '--drop=' + r.choice(['text', 'title'])], ['reorder']):
            self.run(command[0], whole, '-o', made, '--force', *command[1:])
            n += self.compare(made, documents, ' '.join(command))
        cut = r.randint(1, len(lines) - 1)
        parts = [self.build(part, 'part%d.gx' % i) for i, part in enumerate((lines[:cut], lines[cut:]))]
        self.run('collect', *parts, '-o', self.path('parts'))
        return n + self.compare(self.path('parts'), documents, 'collect')

    def collection(self, steps):
        r, folder, live, n, next_id = self.r, self.path('folder'), {}, 0, 0
        create = ['--create', '--positions', '--stemmer=none']
        for step in range(steps):
            new = {'e%d' % (next_id + i): self.document() for i in range(r.randint(1, 60))}
            next_id += len(new)
            self.run('add', folder, self.write(new.items()), '--columns=id,title,text', '-q',
                     '--merge=' + r.choice(['none', 'tiers']), *(create if step == 0 else []))
            live.update(new)
            for name in r.sample(sorted(live), len(live) // 6):
                live[name] = None
            changed = {name: self.document() for name in live if live[name] is None}
            live.update(changed)
            if changed:
                self.run('update', folder, self.write(changed.items()), '--columns=id,title,text', '-q')
            gone = r.sample(sorted(live), len(live) // 5)
            with open(self.path('gone'), 'w') as f:
                f.write(''.join(name + '\n' for name in gone))
            if gone:
                self.run('delete', folder, '--ids', self.path('gone'), '-q')
            for name in gone:
                del live[name]
            n += self.compare(folder, live, 'collection, step %d' % step)
        self.run('recode', folder, '-o', self.path('flat.gx'), '--codec=rice')
        n += self.compare(self.path('flat.gx'), live, 'a collection to a file')
        self.run('merge', folder, '--policy=all', '-j', '2')
        return n + self.compare(folder, live, 'merge')

    def refusals(self):
        documents = [('d%d' % i, self.document()) for i in range(9)]
        whole, without = self.build(documents, 'a.gx'), self.path('without.gx')
        self.run('recode', whole, '-o', without, '--drop=positions')
        for args, code, words in (
                (['term', without, '--as-is', '-n', '9', '--positions', 'w1'], 2, 'build it with --positions'),
                (['collect', whole, without, '-o', self.path('mixed')], 2, 'positions'),
                (['add', self.path('folder'), self.write(documents), '--columns=id,title,text', '--create',
                  '--stemmer=none', '--store=title'], 2, 'has positions')):
            if words not in self.run(*args, code=code):
                fail('%s: the message lacks "%s"' % (' '.join(args), words))
        self.run('recode', whole, '-o', self.path('impacts.gx'), '--impacts=bm25')
        self.run('check', self.path('impacts.gx'))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('gpuidx')
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('--seed', type=int, default=random.randrange(2 ** 32))
    args = parser.parse_args()
    print('seed %d' % args.seed)
    n = 0
    for i in range(args.rounds):
        with tempfile.TemporaryDirectory() as folder:
            one = Round(os.path.abspath(args.gpuidx), args.seed + i, folder)
            documents = {'d%d' % d: one.document() for d in range(one.r.randint(2, 600))}
            documents['long'] = (one.words(one.r.choice([0, 12])), one.words(20000))
            documents['longer'] = (one.words(9000), one.words(9000))
            n += one.files(documents) + one.collection(5)
            one.refusals()
    print('%d lists, none differs' % n)


if __name__ == '__main__':
    main()
