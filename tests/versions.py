#!/usr/bin/env python3
"""versions.py: the program reads the index files of every version.

    versions.py PROGRAM FOLDER             FOLDER has a folder a version: its indexes, and answers.txt
    versions.py --write VERSION PROGRAM    make such a folder, VERSION, with this program

Each index must pass `check`, and each line of answers.txt, a query's flags and its answer as JSON, be answered so."""
import json
import os
import shlex
import subprocess
import sys
import tempfile

WORDS = 'merge find search list posting index block skip short long bits code table query rank score term text'.split()
BUILDS = {
    'plain.gx': ['--store=text'],
    'positions.gx': ['--positions'],
    'fields.gx': ['--field=title,text'],
    'attributes.gx': ['--attr', 'year:int', '--attr', 'kind:keyword'],
    'eliasfano.gx': ['--codec=ef128'],
}
QUERIES = [
    ('plain.gx', ['-k', '5'], 'merge list search'),
    ('plain.gx', ['-k', '5', '--op=and'], 'short list'),
    ('plain.gx', ['-k', '5', '--syntax=boolean'], '(merge OR block) AND NOT rank'),
    ('positions.gx', ['-k', '5', '--syntax=boolean'], '"merge find"'),
    ('fields.gx', ['-k', '5', '--fields=title^3,text'], 'merge list'),
    ('attributes.gx', ['-k', '5', '--filter', 'year:>=2003 AND kind:a'], 'query score'),
    ('eliasfano.gx', ['-k', '5'], 'index term'),
    ('collection', ['-k', '5'], 'merge list search'),
]


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        sys.exit('%s: exit %d\n%s' % (shlex.join(words), done.returncode, done.stderr))
    return done.stdout


def documents():
    """120 documents of words that a small generator draws."""
    state = 12345
    for i in range(120):
        drawn = []
        for _ in range(30):
            state = (state * 1103515245 + 12345) % 2**31
            drawn.append(WORDS[state // 65536 % len(WORDS)])
        yield {'id': 'd%03d' % i, 'title': ' '.join(drawn[:4]), 'text': ' '.join(drawn[4:]), 'year': 2000 + i % 7,
               'kind': 'abc'[i % 3]}


def answer(program, index, flags, query):
    said = run(program, 'query', '-q', index, '--engine=cpu', '--format=jsonl', *flags, query)
    return [[r['id'], r['score']] for r in json.loads(said)['hits']]


def write(folder, program):
    os.makedirs(folder, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        corpora = []
        for part in range(3): # all, and two halves
            corpora.append(os.path.join(work, '%d.jsonl' % part))
            with open(corpora[part], 'w') as f:
                for i, d in enumerate(documents()):
                    if part == 0 or i % 2 == part - 1:
                        f.write(json.dumps(d) + '\n')
        for name, flags in BUILDS.items():
            run(program, 'build', '-q', corpora[0], '-o', os.path.join(folder, name), '--force', *flags)
        halves = [os.path.join(work, '%d.gx' % part) for part in (1, 2)]
        for corpus, half in zip(corpora[1:], halves):
            run(program, 'build', '-q', corpus, '-o', half)
        run(program, 'collect', '-q', *halves, '-o', os.path.join(folder, 'collection'))
        gone = os.path.join(work, 'gone')
        with open(gone, 'w') as f:
            f.write('d007\nd091\n')
        run(program, 'delete', '-q', os.path.join(folder, 'collection'), '--merge=none', '--ids', gone)
    with open(os.path.join(folder, 'answers.txt'), 'w') as f:
        for index, flags, query in QUERIES:
            answered = answer(program, os.path.join(folder, index), flags, query)
            f.write(json.dumps([index, flags, query, answered]) + '\n')


def check(program, top):
    versions = sorted(v for v in os.listdir(top) if os.path.isdir(os.path.join(top, v)))
    n = 0
    for version in versions:
        folder = os.path.join(top, version)
        for index in sorted(set(os.listdir(folder)) - {'answers.txt'}):
            run(program, 'check', '-q', os.path.join(folder, index))
        with open(os.path.join(folder, 'answers.txt')) as f:
            for line in f:
                index, flags, query, expected = json.loads(line)
                got = answer(program, os.path.join(folder, index), flags, query)
                if got != expected:
                    sys.exit('%s of version %s, %s: %s, and then it was %s' % (index, version, query, got, expected))
                n += 1
    if not n:
        sys.exit('%s: no version has answers' % top)
    print('fixtures      %s: every index passes check, %d answers are those of then' % (', '.join(versions), n))


def main():
    if len(sys.argv) == 4 and sys.argv[1] == '--write':
        write(sys.argv[2], sys.argv[3])
    elif len(sys.argv) == 3:
        check(sys.argv[1], sys.argv[2])
    else:
        sys.exit(__doc__)


if __name__ == '__main__':
    main()
