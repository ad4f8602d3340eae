#!/usr/bin/env python3
"""rooms.py: the map in README.md is true.

    rooms.py ROOT

The map lists every folder of source, one a line, in order. A file may include headers of its own folder and of folders
listed before it, and of no others. Every #include of a project header in .c, .h, .cu and .cuh files is checked, and
so is that each folder that holds such files stands in the map.

The program is built on the public interface alone: a file of tools/ (its folders excepted, which measure) may include
only headers of tools/ and the two public ones."""
import os
import re
import sys

SOURCES = ('.c', '.h', '.cu', '.cuh')
PROGRAM = 'tools'
PUBLIC = ('engine/gpuidx.h', 'engine/gpuidx_advanced.h')
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def rooms(readme):
    """The folders of the map, in order: the first words of the indented lines in the section "The map"."""
    section = re.search(r'^## The map\n(.*?)(?=^## |\Z)', readme, re.M | re.S)
    if not section:
        sys.exit('README.md: no section "## The map"')
    return re.findall(r'^    ([a-z0-9_/]+)/ ', section.group(1), re.M)


def faults(root):
    with open(os.path.join(root, 'README.md'), encoding='utf-8') as f:
        order = rooms(f.read())
    place = {room: i for i, room in enumerate(order)}
    seen, n_includes = set(), 0
    for room in order:
        if not os.path.isdir(os.path.join(root, room)):
            yield 'README.md: the map lists %s/, which is not there' % room
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if not n.startswith(('.', 'build')) or folder != root and n == 'build')
        room = os.path.relpath(folder, root)
        for name in sorted(files):
            if not name.endswith(SOURCES) or room == '.':
                continue
            path = os.path.join(room, name)
            if room.startswith('tests'):  # tests look into every room
                continue
            if room not in place:
                if room not in seen:
                    yield 'README.md: the map does not list %s/' % room
                seen.add(room)
                continue
            with open(os.path.join(root, path), encoding='utf-8') as f:
                text = f.read()
            for m in INCLUDE.finditer(text):
                n_includes += 1
                if path.startswith('engine/gpuidx') and os.path.isfile(os.path.join(root, 'engine', m.group(1))):
                    continue  # public headers are installed side by side
                target = os.path.dirname(m.group(1))
                line = text.count('\n', 0, m.start(1)) + 1
                if not os.path.isfile(os.path.join(root, m.group(1))):
                    yield '%s:%d: includes "%s", which is not a path from the top' % (path, line, m.group(1))
                elif room == PROGRAM and target != PROGRAM and m.group(1) not in PUBLIC:
                    yield '%s:%d: includes "%s", which is not public; tools/ may include only %s and its own ' \
                        'headers' % (path, line, m.group(1), ' and '.join(PUBLIC))
                elif target not in place or place[target] > place[room]:
                    yield '%s:%d: %s/ may not include "%s": the map lists %s/ after it' % (
                        path, line, room, m.group(1), target)
    if n_includes < 100:
        yield 'only %d includes were found; is %s the source?' % (n_includes, root)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = list(faults(sys.argv[1]))
    for fault in found:
        print(fault)
    sys.exit(1 if found else 0)


main()
