#!/usr/bin/env python3
"""values.py: the program gives back the attributes' values that documents were built with.

    values.py GPUIDX [SEED]

Random documents with attributes of all types become an index file, and a collection of several segments with deletes.
`doc -f json` and `query --show` in jsonl and csv must show of every document what it was given, which this program
keeps for itself. The seed is printed."""
import csv
import datetime
import io
import json
import os
import random
import subprocess
import sys
import tempfile

TYPES = {'n': 'int', 'far': 'int', 'years': 'int', 'x': 'float', 'when': 'date', 'brand': 'keyword', 'tags': 'keywords',
         'open': 'bool'}
WORDS = ['red', 'a, b', 'say "so"', '\u00e9tude', '\U0001f389', '=1+1', ' blank ', 'x' * 300, '\\', '0']


def random_value(r, name):
    if name == 'n':
        return r.randint(-3, 250)
    if name == 'far':
        return r.choice([-2 ** 63, 2 ** 63 - 1, 0, 2 ** 53 + 1, r.randint(-2 ** 63, 2 ** 63 - 1)])
    if name == 'years':
        return sorted(r.sample(range(1990, 2030), r.randint(1, 4)))
    if name == 'x':
        return r.choice([0.0, 0.1, 1e-300, -8.9e307, 5e-324, r.gauss(0, 1e6), r.random()])
    if name == 'when':
        return r.randint(-62167219200, 253402300799)
    if name == 'brand':
        return r.choice(WORDS)
    if name == 'tags':
        return sorted(r.sample(WORDS, r.randint(1, 5)), key=lambda w: w.encode())
    return r.random() < .5


def date_text(second):
    at = datetime.datetime(1970, 1, 1) + datetime.timedelta(days=second // 86400, seconds=second % 86400) \
        if second >= -62135596800 else None
    if at is None:  # the year 0000, which Python's calendar lacks: 366 days before 0001-01-01
        at = datetime.datetime(4, 1, 1) + datetime.timedelta(seconds=second + 62167219200)
        text = at.strftime('%m-%d') if at.year == 4 else None
        return '0000-%s' % text if second % 86400 == 0 else '0000-%sT%sZ' % (text, at.strftime('%H:%M:%S'))
    day = '%04d-%02d-%02d' % (at.year, at.month, at.day)
    return day if second % 86400 == 0 else day + at.strftime('T%H:%M:%SZ')


def shown(values):
    """The member `attributes` that is right, as Python reads it."""
    return {k: date_text(v) if k == 'when' else v for k, v in values.items()}


def run(*command):
    done = subprocess.run(command, capture_output=True)
    if done.returncode:
        sys.exit('%s: exit %d: %s' % (' '.join(command), done.returncode, done.stderr.decode()))
    return done.stdout.decode()


def compare(what, got, want):
    if got != want or [type(x) for x in got.values()] != [type(x) for x in want.values()]:
        sys.exit('%s: %r is shown, and %r was given' % (what, got, want))


def csv_field(value):
    if isinstance(value, list):
        return ','.join(map(csv_field, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def check(program, index, documents):
    names = list(documents)
    for line, name in zip(run(program, 'doc', index, *names, '-f', 'json').splitlines(), names):
        compare('doc %s' % name, json.loads(line)['attributes'], shown(documents[name]))
    answer = json.loads(run(program, 'query', '-q', index, '--show=all', '-f', 'jsonl', '-k', '1000', 'lamp'))
    assert len(answer['hits']) == len(names)
    for hit in answer['hits']:
        compare('query, %s' % hit['id'], hit['attributes'], shown(documents[hit['id']]))
    rows = csv.DictReader(io.StringIO(run(program, 'query', '-q', index, '--show=when,n', '--show=years', '-f', 'csv',
                                          '-k', '1000', 'lamp')))
    for row in rows:
        want = shown(documents[row['id']])
        for name in ('when', 'n', 'years'):
            text = csv_field(want[name]) if name in want else ''
            if row[name].lstrip("'") != text:
                sys.exit('csv, %s, %s: %r is shown, %r was given' % (row['id'], name, row[name], text))


def write(path, documents):
    with open(path, 'w', encoding='utf-8') as f:
        for name, values in documents.items():
            values = dict(values)
            if 'when' in values:
                values['when'] = date_text(values['when'])
            f.write(json.dumps(dict(values, id=name, text='lamp')) + '\n')


def main():
    program, seed = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2 ** 32)
    print('seed %d' % seed)
    r = random.Random(seed)
    attributes = ['--attr=%s:%s' % item for item in TYPES.items()]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        whole, parts = {}, []
        for segment in range(3):
            documents = {}
            for i in range(r.choice([1, 60, 300])):
                dense = r.random() < .3
                documents['%d-%d' % (segment, i)] = {
                    name: random_value(r, name) for name in TYPES if dense or r.random() < .6}
            write('%d.jsonl' % segment, documents)
            run(program, 'build', '-q', '%d.jsonl' % segment, '-o', '%d.gx' % segment, *attributes)
            check(program, '%d.gx' % segment, documents) if segment == 0 and documents else None
            whole.update(documents)
            parts.append('%d.gx' % segment)
        run(program, 'collect', '-q', *parts, '-o', 'papers')
        check(program, 'papers', whole)
        gone = r.sample(sorted(whole), len(whole) // 3)
        with open('gone.txt', 'w') as f:
            f.write(''.join(name + '\n' for name in gone))
        run(program, 'delete', '-q', 'papers', '--ids=gone.txt', '--merge=none')
        check(program, 'papers', {name: v for name, v in whole.items() if name not in gone})
    print('%d documents' % len(whole))


main()
