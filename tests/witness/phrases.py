#!/usr/bin/env python3
"""phrases.py: exact phrases against peers in one run: what they match, and how long they take.

    phrases.py GPUIDX DOCS.tsv FOLDER [--classes rare,mixed,frequent,stop] [--n 250] [--peers tantivy,fts5] [--runs N]

DOCS.tsv has a document a line: an id, a tab, and words of a-z and 0-9 in lower case with blanks between, so that all
programs see the same words. FOLDER keeps indexes, document frequencies (terms.tsv: a word, a tab, its df) and the
phrases (phrases.tsv) from run to run.

Phrases: a word of the collection is drawn at random, and the next 1, 2 or 3 words of that document make a phrase of
2, 3 or 4; it goes to the first open cell that fits. rare: every word in at most 1 % of documents; mixed: none in over
10 %, one in at most 1 %; frequent: one in over 10 %, not all of them function words; stop: all are function words.

All run on one core, the process pinned by taskset. Tantivy (PyPI) and SQLite's FTS5 tell for each phrase how many
documents match, which is compared; each query is timed as the median of three passes after a warm-up. gpuidx: `replay`.
Times are in microseconds."""
import argparse
import json
import mmap
import os
import random
import shutil
import sqlite3
import statistics
import subprocess
import time

STOP = set((
    'a about after all also an and are as at be been between both but by can do for from had has have he '
    'how i if in into is it its more most no not of on one only or other our out over so some such than '
    'that the their them then there these they this to two under up was we were when which while who will '
    'with').split())
SEED = 20261128


def frequencies(docs, folder):
    path = os.path.join(folder, 'terms.tsv')
    if not os.path.exists(path):
        df = {}
        with open(docs, encoding='ascii') as f:
            for line in f:
                for w in set(line.split('\t', 1)[1].split()):
                    df[w] = df.get(w, 0) + 1
        with open(path, 'w', encoding='ascii') as f:
            f.writelines('%s\t%d\n' % item for item in df.items())
    with open(path, encoding='ascii') as f:
        return {w: int(n) for w, n in (line.split('\t') for line in f)}


def class_of(words, df, n_docs):
    shares = [df.get(w, 0) / n_docs for w in words]
    if all(w in STOP for w in words):
        return 'stop'
    if max(shares) <= .01:
        return 'rare'
    if max(shares) <= .1:
        return 'mixed' if min(shares) <= .01 else None
    return 'frequent'


def draw(docs, df, n_docs, classes, n):
    r = random.Random(SEED)
    open_cells = {(c, length): n // 3 + (length - 2 < n % 3) for c in classes for length in (2, 3, 4)}
    phrases = {c: [] for c in classes}
    with open(docs, 'rb') as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as text:
        while any(open_cells.values()):
            at = text.rfind(b' ', 0, r.randrange(len(text))) + 1
            words = text[at:text.find(b'\n', at)].decode('ascii').split(' ')
            if any('\t' in w for w in words[:4]):
                continue
            for length in r.sample((2, 3, 4), 3):
                if len(words) < length or '' in words[:length]:
                    continue
                c = class_of(words[:length], df, n_docs)
                if open_cells.get((c, length)):
                    open_cells[c, length] -= 1
                    phrases[c].append(' '.join(words[:length]))
                    break
    return phrases


def figures(us):
    us = sorted(us)
    return {'mean': statistics.fmean(us), 'p50': us[len(us) // 2], 'p99': us[min(len(us) - 1, len(us) * 99 // 100)]}


def timed(ask, phrases):
    counts, times = [], []
    for p in phrases:
        counts.append(ask(p))
        passes = []
        for _ in range(3):
            begin = time.perf_counter()
            ask(p)
            passes.append((time.perf_counter() - begin) * 1e6)
        times.append(statistics.median(passes))
    return counts, figures(times)


def tantivy_peer(docs, folder):
    import tantivy
    path = os.path.join(folder, 'tantivy')
    builder = tantivy.SchemaBuilder()
    builder.add_text_field('text', stored=False, tokenizer_name='whitespace', index_option='position')
    schema = builder.build()
    if not os.path.exists(os.path.join(path, 'done')):
        shutil.rmtree(path, ignore_errors=True)
        os.makedirs(path)
        index = tantivy.Index(schema, path=path)
        writer = index.writer(heap_size=1 << 30, num_threads=1)
        with open(docs, encoding='ascii') as f:
            for line in f:
                writer.add_document(tantivy.Document(text=line.rstrip('\n').split('\t', 1)[1]))
        writer.commit()
        writer.wait_merging_threads()
        open(os.path.join(path, 'done'), 'w').close()
    index = tantivy.Index(schema, path=path)
    searcher = index.searcher()

    def query(p):
        return tantivy.Query.phrase_query(schema, 'text', p.split())
    return (lambda p: searcher.search(query(p), limit=10, count=True).count,
            lambda p: searcher.search(query(p), limit=10, count=False))


def fts5_peer(docs, folder):
    path = os.path.join(folder, 'fts5.db')
    done = os.path.exists(path + '.done')
    if not done and os.path.exists(path):
        os.unlink(path)
    db = sqlite3.connect(path)
    if not done:
        db.execute("create virtual table t using fts5(text, content='', tokenize='ascii')")
        with open(docs, encoding='ascii') as f:
            db.executemany('insert into t(rowid, text) values (?, ?)',
                           ((i, line.rstrip('\n').split('\t', 1)[1]) for i, line in enumerate(f)))
        db.execute("insert into t(t) values ('optimize')")
        db.commit()
        open(path + '.done', 'w').close()
    return (lambda p: db.execute('select count(*) from t where t match ?', ('"%s"' % p,)).fetchone()[0],
            lambda p: db.execute('select rowid from t where t match ? order by rank limit 10',
                                 ('"%s"' % p,)).fetchall())


def gpuidx_peer(program, docs, folder, runs):
    path = os.path.join(folder, 'phrases.gx')
    if not os.path.exists(path):
        subprocess.run([program, 'build', '-q', docs, '--columns=id,text', '--positions', '--analyzer=simple', '-o',
                        path], check=True)

    def replay(phrases, arguments):
        log = os.path.join(folder, 'log.txt')
        with open(log, 'w', encoding='ascii') as f:
            f.writelines('%d\t"%s"\n' % (i, p) for i, p in enumerate(phrases))
        done = subprocess.run(['taskset', '-c', '0', program, 'replay', path, log, '-q', '--engine=cpu',
                               '--syntax=boolean', '--in-memory', '--warmup=%d' % len(phrases), '--runs=%d' % runs,
                               '--report=-'] + arguments, check=True, capture_output=True, text=True)
        report = json.loads(done.stdout)
        of = report['latency_us']
        return {'mean': of['mean'], 'p50': of['p50'], 'p99': of['p99'],
                'cpu': report['cpu_seconds'] * 1e6 / report['queries']}

    def counts(phrases):
        done = subprocess.run([program, 'query', path, '-q', '--engine=cpu', '--syntax=boolean', '-k', '1', '-f',
                               'jsonl'], input=''.join('"%s"\n' % p for p in phrases), check=True,
                              capture_output=True, text=True)
        return [json.loads(line)['matches'] for line in done.stdout.splitlines()]
    return counts, replay


def main():
    p = argparse.ArgumentParser()
    p.add_argument('program')
    p.add_argument('docs')
    p.add_argument('folder')
    p.add_argument('--classes', default='rare,mixed,frequent,stop')
    p.add_argument('--n', type=int, default=250)
    p.add_argument('--peers', default='tantivy,fts5')
    p.add_argument('--runs', type=int, default=5)
    a = p.parse_args()
    os.makedirs(a.folder, exist_ok=True)
    df, path = frequencies(a.docs, a.folder), os.path.join(a.folder, 'phrases.%d.json' % a.n)
    if not os.path.exists(path):
        with open(a.docs, 'rb') as f:
            n_docs = sum(1 for _ in f)
        with open(path, 'w', encoding='ascii') as f:
            json.dump(draw(a.docs, df, n_docs, a.classes.split(','), a.n), f)
    with open(path, encoding='ascii') as f:
        phrases = json.load(f)
    counts_of, replay = gpuidx_peer(os.path.abspath(a.program), a.docs, a.folder, a.runs)
    peers = {name: {'tantivy': tantivy_peer, 'fts5': fts5_peer}[name](a.docs, a.folder)
             for name in a.peers.split(',') if name}
    os.sched_setaffinity(0, {0})
    for c in a.classes.split(','):
        print('%-9s gpuidx  %s' % (c, replay(phrases[c], ['-k', '10'])))
        counts = counts_of(phrases[c])
        for name, (count, search) in peers.items():
            other = [count(x) for x in phrases[c]]
            differ = sum(x != y for x, y in zip(counts, other))
            print('%-9s %-7s %s; %d of %d counts differ' %
                  (c, name, timed(search, phrases[c])[1], differ, len(counts)), flush=True)


main()
