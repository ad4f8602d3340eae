#!/usr/bin/env python3
"""make_bindings.py: declarations for Python, made of the public headers.

    make_bindings.py OUTPUT.py HEADER...

The declarations of the headers, in order, become a module that cffi loads in ABI mode: no compiler is needed where the
package is used. Comments, includes, initialiser macros and what only C++ sees are left out; enumerators and constants that
are plain numbers stay."""
import re
import sys

import cffi


def declarations(text):
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    text = re.sub(r'//[^\n]*', '', text)
    text = text.replace('\\\n', ' ')
    text = re.sub(r'#ifdef __cplusplus.*?#endif', '', text, flags=re.S)
    lines = []
    for line in text.split('\n'):
        number = re.match(r'\s*#\s*define\s+(\w+)\s+(\d+)u?\s*$', line)
        if number:
            lines.append('#define %s %s' % number.groups())
        elif not re.match(r'\s*#', line):
            lines.append(line)
    return re.sub(r'\bGX_API\b', '', '\n'.join(lines))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    ffi = cffi.FFI()
    ffi.cdef('void free(void *);')
    for path in sys.argv[2:]:
        with open(path, encoding='utf-8') as f:
            ffi.cdef(declarations(f.read()))
    ffi.set_source('gpuidx._bindings', None)
    ffi.emit_python_code(sys.argv[1])


main()
