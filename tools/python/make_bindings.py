#!/usr/bin/env python3
"""make_bindings.py: declarations for Python, made of the public headers.

    make_bindings.py OUTPUT.py HEADER...

The declarations of the headers, in order, become a module that cffi loads in ABI mode: no compiler is needed where the
package is used. Comments, includes, initialiser macros and what only C++ sees are left out; enumerators and constants
that are plain numbers stay."""
import re
import sys

import cffi


def number_of(expression, numbers):
    """The value of an integer expression of C made of literals, known names, + - * << and brackets, else None."""
    words = re.findall(r'\w+|<<|[-+*()]', expression)
    if re.sub(r'\s', '', expression) != ''.join(words):
        return None
    python = []
    for word in words:
        literal = re.fullmatch(r'(0x[0-9a-fA-F]+|\d+)[uUlL]*', word)
        if literal:
            python.append(str(int(literal.group(1), 0)))
        elif word in numbers:
            python.append(str(numbers[word]))
        elif re.fullmatch(r'\w+', word):
            return None
        else:
            python.append(word)
    try:
        return int(eval(' '.join(python), {'__builtins__': {}}))
    except (SyntaxError, TypeError):
        return None


def declarations(text, numbers):
    """What cffi is to read of a header. numbers: {constant: value}, to which the header's are added."""
    text = re.sub(r'/\*.*?\*/', '', text, flags=re.S)
    text = re.sub(r'//[^\n]*', '', text)
    text = text.replace('\\\n', ' ')
    text = re.sub(r'#ifdef __cplusplus.*?#endif', '', text, flags=re.S)
    lines = []
    for line in text.split('\n'):
        constant = re.match(r'\s*#\s*define\s+(\w+)\s+([\w+*()<> -]+?)\s*$', line)
        value = number_of(constant.group(2), numbers) if constant else None
        if value is not None:
            numbers[constant.group(1)] = value
            lines.append('#define %s %d' % (constant.group(1), value))
        elif not re.match(r'\s*#', line):
            lines.append(line)
    text = re.sub(r'\bGX_API\b|__attribute__\(\(format\([^)]*\)\)\)', '', '\n'.join(lines))
    enums = {}
    for body in re.findall(r'\benum\b[^{;]*\{([^}]*)\}', text):
        value = -1
        for item in filter(None, map(str.strip, body.split(','))):
            name, _, given = map(str.strip, item.partition('='))
            value = int(given, 0) if given else value + 1
            enums[name] = value

    def length(match):
        """The length of an array as a number."""
        value = number_of(match.group(1), {**numbers, **enums})
        if value is None:
            raise ValueError('the length %s is no number that this program can work out' % match.group(0))
        return '[%d]' % value

    return re.sub(r'\[([^\]]+)\]', length, text)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    ffi, numbers = cffi.FFI(), {}
    ffi.cdef('void free(void *);')
    for path in sys.argv[2:]:
        with open(path, encoding='utf-8') as f:
            ffi.cdef(declarations(f.read(), numbers))
    ffi.set_source('gpuidx._bindings', None)
    ffi.emit_python_code(sys.argv[1])


main()
