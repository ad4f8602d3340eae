#!/usr/bin/env python3
"""identifiers.py GPUIDX FOLDER... [--parts N] [--endings .h,.py]: parts of names of programs, against a scan.

The files of the folders are indexed with the analyzer `code`. Parts of names, and names, drawn at random are searched
for: their documents have to be those in which a scan finds them. The scan divides names with its own rules."""
import argparse
import collections
import json
import os
import random
import re
import subprocess
import tempfile

NAME = re.compile('[A-Za-z0-9_]+')
PART = re.compile('[0-9]+|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[A-Z]')


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument('gpuidx')
    p.add_argument('folders', nargs='+')
    p.add_argument('--parts', type=int, default=1000)
    p.add_argument('--endings', default='.h,.py')
    p.add_argument('--seed', type=int, default=1)
    a = p.parse_args()
    where = collections.defaultdict(set)  # of names and parts, in lower case
    parts, names, n = set(), set(), 0
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + '/x.jsonl', 'w') as out:
            for top in a.folders:
                for path, _, files in os.walk(top):
                    for name in sorted(files):
                        file = os.path.join(path, name)
                        if not name.endswith(tuple(a.endings.split(','))) or not os.path.isfile(file):
                            continue
                        with open(file, 'rb') as f:
                            text = f.read().decode('ascii', 'replace').replace('\ufffd', ' ').replace('\0', ' ')
                        out.write(json.dumps({'id': file, 'text': text}) + '\n')
                        n += 1
                        for found in set(NAME.findall(text)):
                            of_name = PART.findall(found)
                            for part in of_name:
                                where[part.lower()].add(file)
                                parts.add(part.lower())
                            if of_name and len(found) < 200:
                                where[found.lower()].add(file)
                                names.add(found)
        subprocess.run([a.gpuidx, 'build', '-q', '--analyzer=code', folder + '/x.jsonl', '-o', folder + '/x.gx'],
                       check=True)
        r = random.Random(a.seed)
        asked = r.sample(sorted(w for w in parts if len(w) < 200), min(a.parts, len(parts)))
        n_parts = len(asked)
        asked += r.sample(sorted(names), min(a.parts // 4, len(names)))
        out = subprocess.run([a.gpuidx, 'query', '-q', folder + '/x.gx', '-', '--op=and', '-f', 'tsv', '-k', '1000000'],
                             input='\n'.join(asked).encode(), stdout=subprocess.PIPE, check=True).stdout
    found = collections.defaultdict(set)
    for line in out.decode().splitlines():
        q, doc, _ = line.split('\t')
        found[int(q) - 1].add(doc)
    missed = extra = shown = 0
    for i, w in enumerate(asked):
        # a name wants itself, whatever its capitals, and its parts
        terms = [w] + (PART.findall(w) if i >= n_parts else [])
        wanted = set.intersection(*(where[t.lower()] for t in terms))
        missed += len(wanted - found[i])
        extra += len(found[i] - wanted)
        if wanted != found[i] and shown < 10:
            shown += 1
            print('%r: missed %s, extra %s' % (w, sorted(wanted - found[i])[:2], sorted(found[i] - wanted)[:2]))
    print('%d files, %d parts and names: %d missed, %d extra' % (n, len(asked), missed, extra))


if __name__ == '__main__':
    main()
