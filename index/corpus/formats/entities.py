#!/usr/bin/env python3
"""entities.py: print the table of entities.c: HTML's named character references (section 13.5 of the standard), as
Python's html.entities has them.

    entities.py >TABLE

A name that stands without a semicolon, too, has LEGACY; one of HTML 4.01 has HTML4."""
from html.entities import html5, name2codepoint

entries = []
for name in sorted(n[:-1] for n in html5 if n.endswith(';')):
    codes = [ord(c) for c in html5[name + ';']]
    flags = [f for f, has in (('LEGACY', name in html5), ('HTML4', name in name2codepoint)) if has]
    # It takes the place of its reference: "&nGt;" has 5 bytes, and its characters would have 6.
    if len(html5[name + ';'].encode()) > len(name) + 2:
        codes.pop()
    entries.append('{"%s", %s, %d, %d}' % (name, ' | '.join(flags) or '0', codes[0], codes[1] if len(codes) > 1 else 0))
assert all(n + ';' in html5 for n in html5 if not n.endswith(';'))

line = '   '
for entry in entries:
    if len(line) + len(entry) + 2 > 120:
        print(line)
        line = '   '
    line += ' %s,' % entry
print(line)
