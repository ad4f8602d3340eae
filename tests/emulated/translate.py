#!/usr/bin/env python3
"""translate.py: a CUDA source as C++ for the emulated GPU (include/cuda_runtime.h says what that is).

    translate.py ROOT INPUT.cu OUTPUT.cpp DEPFILE

The .cuh files that it includes are put in their places, so that the output stands alone; #line tells compilers and
debuggers where everything comes from. What is CUDA and not C++ is replaced if it is one of the forms known here, and is
an error if not."""
import os
import re
import sys

# An instruction in asm, its operands as %0, .. there, and what is called instead.
INSTRUCTIONS = {
    'cp.async.ca.shared.global [%0], [%1], 4;': 'emulated::copy_async(%0, %1, 4)',
    'cp.async.cg.shared.global [%0], [%1], 16;': 'emulated::copy_async(%0, %1, 16)',
    'cp.async.wait_all;': 'emulated::wait_copies()',
    'mov.u64 %0, %%globaltimer;': '%0 = emulated::nanoseconds()',
    'ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];': 'emulated::load_4(%0, %1, %2, %3, %4)',
    'ld.acquire.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];': 'emulated::load_4(%0, %1, %2, %3, %4)',
    'st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};': 'emulated::store_4(%0, %1, %2, %3, %4)',
    'atom.add.acq_rel.gpu.global.u32 %0, [%1], 1;': '%0 = atomicAdd(%1, 1)',
    'atom.add.acquire.gpu.global.u32 %0, [%1], 1;': '%0 = atomicAdd(%1, 1)',
    '{ .reg .u32 y; .reg .pred there; shfl.sync.up.b32 y|there, %0, %1, %2, 0xffffffff; @there add.u32 %0, %0, y; }':
        '%0 = emulated::add_from_below(%0, %1, %2)',
    '{ .reg .pred wanted; .reg .u64 from; mad.wide.u32 from, %2, 4, %1; setp.ge.s32 wanted, %3, 0; '
    '@wanted ld.global.nc.u32 %0, [from]; }':
        '%0 = (%3) >= 0 ? (%1)[%2] : %0',
    '{ .reg .pred wanted; .reg .u64 from; mad.wide.u32 from, %2, 4, %1; setp.ge.u32 wanted, %3, %4; '
    '@wanted ld.global.nc.u32 %0, [from]; }':
        '%0 = (%3) >= (%4) ? (%1)[%2] : %0',
    'rcp.approx.ftz.f32 %0, %1;': '%0 = 1 / %1',
    '{ .reg .pred absent; .reg .u32 there; and.b32 there, %1, %2; setp.eq.u32 absent, there, 0; '
    '@absent sub.s32 %0, %0, %3; }':
        '%0 -= (%1) & (%2) ? 0 : (%3)',
}

# What must not be left.
UNKNOWN = re.compile(r'<<<|>>>\s*\(|\basm\b|\b__asm|\b__shared__|\b__constant__|\b__managed__|\b__cluster_dims__|'
                     r'\bcooperative_groups\b')
OPEN, CLOSE = '([{', ')]}'


class Refused(Exception):
    pass


def refuse(path, text, at, what):
    raise Refused('%s:%d: %s' % (path, text.count('\n', 0, at) + 1, what))


def without_comments(text):
    """Comments as blanks; lines stay where they are."""
    return re.sub(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|//[^\n]*|/\*.*?\*/',
                  lambda m: m.group(1) or re.sub(r'[^\n]', ' ', m.group(0)), text, flags=re.S)


def pieces(text, separator):
    """text at its separators, those within brackets or strings left alone."""
    out, depth, begin = [], 0, 0
    for m in re.finditer(r'"(?:\\.|[^"\\])*"|[()\[\]{}]|' + re.escape(separator), text):
        token = m.group(0)
        if token in OPEN:
            depth += 1
        elif token in CLOSE:
            depth -= 1
        elif token == separator and depth == 0:
            out.append(text[begin:m.start()].strip())
            begin = m.end()
    return out + [text[begin:].strip()]


def closing(text, at):
    """Where the bracket that opens at `at` is closed, or -1."""
    depth = 0
    for m in re.compile(r'"(?:\\.|[^"\\])*"|[()\[\]{}]').finditer(text, at):
        depth += (m.group(0) in OPEN) - (m.group(0) in CLOSE)
        if depth == 0:
            return m.start()
    return -1


def replace(text, begin, end, new):
    """text with [begin, end) replaced by new and by the line ends that were there."""
    return text[:begin] + new + '\n' * (text.count('\n', begin, end) - new.count('\n')) + text[end:]


def launches(path, text):
    """f<T><<<grid, block, bytes, stream>>>(args) -> emulated::launch(f<T>, grid, block, bytes, stream, args)"""
    while m := re.search(r'(\w+(?:<[^<>;{}]*>)?)\s*<<<', text):
        middle = text.find('>>>', m.end())
        end = closing(text, middle + 3) if text[middle + 3:middle + 4] == '(' else -1
        config = pieces(text[m.end():middle], ',')
        if middle < 0 or end < 0 or len(config) != 4:
            refuse(path, text, m.start(), 'a launch in a form that is not known: %s<<<' % m.group(1))
        args = text[middle + 4:end].strip()
        text = replace(text, m.start(), end + 1,
                       'emulated::launch(%s, %s%s)' % (m.group(1), ', '.join(config), ', ' + args if args else ''))
    return text


def shared_memory(path, text):
    """extern __shared__ T x[]; -> a pointer. __shared__ T x, y[N]; -> static, as blocks run one after another"""
    while m := re.search(r'(\bextern\s+)?\b__shared__\s+([^;]*);', text):
        if m.group(1):
            d = re.fullmatch(r'(\w+)\s+(\w+)\[\]', m.group(2))
            new = d and '%s *const %s = (%s *)emulated::dynamic_shared();' % (d.group(1), d.group(2), d.group(1))
        else:
            first, *others = pieces(m.group(2), ',')
            names = [re.match(r'(?:.*[\s>])?(\w+)\s*(?:\[[^\]]*\]\s*)*$', first, flags=re.S)]
            names += [re.match(r'(\w+)\s*(?:\[[^\]]*\]\s*)*$', o) for o in others]
            new = all(names) and 'static %s;%s' % (m.group(2),
                                                   ''.join(' emulated::begin_shared(%s);' % n.group(1) for n in names))
        if not new:
            refuse(path, text, m.start(), 'shared memory in a form that is not known: ' + m.group(0))
        text = replace(text, m.start(), m.end(), new)
    return text


def instructions(path, text):
    """asm("..." : outputs : inputs : clobbers) -> what INSTRUCTIONS says"""
    while m := re.search(r'\basm\s*(?:volatile\s*)?\(', text):
        end = closing(text, m.end() - 1)
        template, *sections = pieces(text[m.end():end], ':')
        code = ''.join(re.findall(r'"((?:\\.|[^"\\])*)"', template))
        code = ' '.join(code.replace(r'\n', ' ').replace(r'\t', ' ').split())
        if code not in INSTRUCTIONS:
            refuse(path, text, m.start(), 'an instruction that is not in the table of translate.py: ' + code)
        operands = [o for section in sections[:2] for o in pieces(section, ',') if o]
        values = [o[o.index('('):] for o in operands]
        text = replace(text, m.start(), end + 1, re.sub(r'%(\d)', lambda n: values[int(n.group(1))],
                                                        INSTRUCTIONS[code]))
    return text


def expand(root, path, seen):
    """A file's lines as C++, with the .cuh files that it includes where they are included."""
    seen.append(path)
    with open(os.path.join(root, path), encoding='utf-8') as f:
        text = without_comments(f.read())
    for translate in (launches, shared_memory, instructions):
        text = translate(path, text)
    if m := UNKNOWN.search(text):
        refuse(path, text, m.start(), 'CUDA that translate.py does not know: ' + m.group(0))
    out = ['#line 1 "%s"' % path]
    for number, line in enumerate(text.split('\n'), 1):
        m = re.match(r'\s*#\s*include\s+"([^"]+\.cuh)"', line)
        if not m:
            out.append(line)
        elif m.group(1) not in seen:
            out += expand(root, m.group(1), seen) + ['#line %d "%s"' % (number + 1, path)]
        else:
            out.append('')
    return out


def main(root, source, output, depfile):
    seen = []
    try:
        lines = expand(root, os.path.relpath(source, root), seen)
    except Refused as e:
        sys.exit('translate.py: %s' % e)
    with open(output, 'w', encoding='utf-8') as f:
        f.write('\n'.join(['#include <cuda_runtime.h>'] + lines))
    with open(depfile, 'w', encoding='utf-8') as f:
        f.write('%s: %s\n' % (output, ' '.join(os.path.join(root, s) for s in seen)))


if __name__ == '__main__':
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
