#!/usr/bin/env python3
"""columns.py: no line is longer than 120 columns.

    columns.py ROOT

Files of C, C++, CUDA, Python, shell, Bats, Meson and Markdown are read, but for what lies in build folders and in
tests/data. Of Markdown the tables and the code blocks, which may show what a program prints, are left out."""
import os
import sys

MOST = 120
SOURCES = ('.c', '.h', '.cu', '.cuh', '.cpp', '.py', '.sh', '.bash', '.bats', '.md', 'meson.build', 'meson_options.txt')


def sources(root):
    for folder, names, files in os.walk(root):
        here = os.path.relpath(folder, root)
        names[:] = sorted(n for n in names if not n.startswith(('.', 'build'))
                          and os.path.join(here, n) != os.path.join('tests', 'data'))
        for name in sorted(files):
            if name.endswith(SOURCES):
                yield os.path.normpath(os.path.join(here, name))


def is_prose(lines):
    """For each line of Markdown, whether it is neither of a table nor of a code block."""
    fenced = False
    for line in lines:
        if line.startswith('```'):
            fenced = not fenced
        yield not fenced and not line.startswith(('```', '    ', '|'))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    n_files = n_faults = 0
    for path in sources(sys.argv[1]):
        n_files += 1
        with open(os.path.join(sys.argv[1], path), encoding='utf-8') as f:
            lines = f.read().split('\n')
            counts = is_prose(lines) if path.endswith('.md') else [True] * len(lines)
            for number, (line, counted) in enumerate(zip(lines, counts), 1):
                columns = len(line)
                if counted and columns > MOST:
                    n_faults += 1
                    print('%s:%d: %d columns; at most %d' % (path, number, columns, MOST))
    if n_files < 300:
        sys.exit('only %d files were found; is %s the source?' % (n_files, sys.argv[1]))
    sys.exit(1 if n_faults else 0)


main()
