#!/usr/bin/env python3
"""rooms.py: the maps are true, and no room is too full.

    rooms.py ROOT

README.md lists the folders of the source, one a line, in order; the README.md of each lists its rooms, in order. A file
may include headers of its own room and of rooms listed before it, and of no others. Every #include of a project
header in .c, .h, .cu and .cuh files is checked, and so is that each folder that holds such files is listed.

No folder holds more than MOST_FILES files itself; those of tests/data may. The map has at most MOST_LINES lines,
and a page of measurements as many as PAGES says: what was tried goes to TRIED.md, tables of papers to TABLES.md.

The program is built on the public interface alone: a file of PROGRAM may include only headers of these rooms and the
two public ones, and INLINE ones, of which nothing is linked. What measures (tools/bench) sees all."""
import os
import re
import sys

SOURCES = ('.c', '.h', '.cu', '.cuh')
PROGRAM = ('tools', 'tools/cli', 'tools/shell', 'tools/commands', 'tools/serve', 'tools/serve/http',
           'tools/serve/indexes', 'tools/serve/operate', 'tools/serve/protocols', 'tools/serve/protocols/elastic',
           'tools/serve/page', 'tools/serve/command')
MOST_FILES, MOST_LINES = 30, 15
PAGES = {'MEASURED.md': 250}  # lines, at most
PUBLIC = ('engine/api/gpuidx.h', 'engine/api/gpuidx_advanced.h')
INLINE = ('engine/text/ascii.h',)
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.M)


def listed(root, readme, heading):
    """The folders that a README.md lists: the first words of the indented lines under a heading."""
    with open(os.path.join(root, readme), encoding='utf-8') as f:
        section = re.search(r'^## %s\n(.*?)(?=^## |\Z)' % heading, f.read(), re.M | re.S)
    if not section:
        sys.exit('%s: no section "## %s"' % (readme, heading))
    return re.findall(r'^    ([a-z0-9_/]+)/ ', section.group(1), re.M)


def rooms(root):
    """All rooms, in order; those of tests are not in any."""
    for folder in listed(root, 'README.md', 'The map'):
        if folder != 'tests':
            yield from listed(root, os.path.join(folder, 'README.md'), 'The rooms')


def folders(root):
    """Each folder of the source and the files in it."""
    for folder, names, files in os.walk(root):
        names[:] = sorted(n for n in names if not n.startswith(('.', 'build', '__pycache__')))
        yield os.path.normpath(os.path.relpath(folder, root)), sorted(files)


def wrong_include(root, path, target, place):
    """What is wrong with an include of `target`, or None."""
    room = os.path.dirname(path)
    if room == 'engine/api' and os.path.isfile(os.path.join(root, room, target)):
        return None  # public headers are installed side by side
    if not os.path.isfile(os.path.join(root, target)):
        return 'which is not a path from the top'
    if room in PROGRAM and os.path.dirname(target) not in PROGRAM and target not in PUBLIC + INLINE:
        return 'which is not public; the program may include only %s and its own headers' % ' and '.join(PUBLIC)
    if place.get(os.path.dirname(target), len(place)) > place[room]:
        return 'of a room that is listed after %s/' % room
    return None


def faults(root):
    place = {room: i for i, room in enumerate(rooms(root))}
    if len(listed(root, 'README.md', 'The map')) > MOST_LINES:
        yield 'README.md: the map has more than %d lines' % MOST_LINES
    for room in place:
        if not os.path.isdir(os.path.join(root, room)):
            yield '%s/ is listed, and is not there' % room
    n_includes = 0
    for room, files in folders(root):
        if len(files) > MOST_FILES and not room.startswith('tests/data'):
            yield '%s/ holds %d files; a folder may hold %d' % (room, len(files), MOST_FILES)
        for name in PAGES.keys() & set(files):
            with open(os.path.join(root, room, name), encoding='utf-8') as f:
                if sum(1 for _ in f) > PAGES[name]:
                    yield '%s/%s has more than %d lines' % (room, name, PAGES[name])
        sources = [name for name in files if name.endswith(SOURCES)]
        if room == '.' or room.startswith('tests'):  # tests look into every room
            continue
        if sources and room not in place:
            yield '%s/ is not listed in the README.md of its folder' % room
            continue
        for name in sources:
            path = os.path.join(room, name)
            with open(os.path.join(root, path), encoding='utf-8') as f:
                text = f.read()
            for m in INCLUDE.finditer(text):
                n_includes += 1
                wrong = wrong_include(root, path, m.group(1), place)
                if wrong:
                    yield '%s:%d: includes "%s", %s' % (path, text.count('\n', 0, m.start(1)) + 1, m.group(1), wrong)
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
