#!/usr/bin/env python3
"""locales.py: numbers, names and tags in text are the same in each locale.

    locales.py ROOT

Outside of engine/text/c_locale.c and engine/text/json_text.c the library calls none of the functions that read numbers
or JSON by the program's locale, and prints no number with a point by snprintf. Nor does it, or a program, call those of
ctype.h and those that compare without regard to capitals: engine/text/ascii.h has them."""
import os
import re
import sys

LIBRARY = ('engine', 'codecs', 'index', 'query')
PROGRAMS = ('tools',)
SEE_TO_IT = ('engine/text/c_locale.c', 'engine/text/json_text.c')
BY_LOCALE = re.compile(r'\b(strtod|strtof|strtold|atof|json_loads|json_loadb|json_loadf|json_load_file|json_dumps'
                       r'|json_dumpb|json_dumpf|json_dump_file)\s*\('
                       r'|\bsn?printf\([^;]*?%[-+ #0-9.*l]*[aefgAEFG]\b')

BY_LETTERS = re.compile(r'\b(is(?:alnum|alpha|blank|cntrl|digit|graph|lower|print|punct|space|upper|xdigit)'
                        r'|to(?:lower|upper)|strn?casecmp|strcasestr|strn?coll)\s*\(')


def faults(root):
    n_files = 0
    for room in LIBRARY + PROGRAMS:
        for folder, _, files in os.walk(os.path.join(root, room)):
            for name in sorted(files):
                path = os.path.relpath(os.path.join(folder, name), root)
                if not name.endswith(('.c', '.h', '.cu', '.cuh')) or path in SEE_TO_IT:
                    continue
                n_files += 1
                with open(os.path.join(root, path), encoding='utf-8') as f:
                    text = f.read()
                for m in BY_LETTERS.finditer(text):
                    yield '%s:%d: here the program\'s locale decides what a letter or a blank is; call what ' \
                        'engine/text/ascii.h has' % (path, text.count('\n', 0, m.start()) + 1)
                for m in BY_LOCALE.finditer(text) if room in LIBRARY else ():
                    yield '%s:%d: here the program\'s locale decides what a number looks like; call gx_strtod, ' \
                        'gx_print (engine/text/c_locale.h) or gx_json_load, gx_json_dump (json_text.h)' % (
                            path, text.count('\n', 0, m.start()) + 1)
    if n_files < 100:
        yield 'only %d files were found; is %s the source?' % (n_files, root)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    found = list(faults(sys.argv[1]))
    for fault in found:
        print(fault)
    sys.exit(1 if found else 0)


main()
