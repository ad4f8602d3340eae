#!/usr/bin/env python3
"""gpu_resources.py: what the kernels of a build take, of each architecture that it was built for.

    gpu_resources.py BUILD [CUOBJDUMP]     BUILD: a build folder with CUDA; CUOBJDUMP: the program (cuobjdump)

A line a kernel and architecture: registers of a thread, stack (spills are in it), static shared memory of a block, the
most over its instances, and how many blocks of 256 threads the registers of a multiprocessor (65,536) allow. Shared
memory that a launch asks for beside it is in query/gpu/ROOM.md."""
import collections
import glob
import os
import re
import subprocess
import sys


def name_of(symbol):
    """The function's own name, of a mangled one of our namespace; None of others'."""
    begin = re.match(r'_ZN2gx(?:12_GLOBAL__N_1)?(\d+)', symbol)
    return symbol[begin.end():begin.end() + int(begin.group(1))] if begin else None


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    objects = sorted(glob.glob(os.path.join(sys.argv[1], '*.cu.o')))
    if not objects:
        sys.exit('%s: no CUDA objects; build with -Dcuda=enabled' % sys.argv[1])
    most = collections.defaultdict(lambda: [0, 0, 0])
    for path in objects:
        told = subprocess.run([sys.argv[2] if len(sys.argv) == 3 else 'cuobjdump', '--dump-resource-usage', path],
                              capture_output=True, text=True, check=True).stdout
        architecture = kernel = None
        for line in told.splitlines():
            arch = re.match(r'arch = (\S+)', line)
            function = re.search(r'Function (\S+?):', line)
            used = re.search(r'REG:(\d+) STACK:(\d+) SHARED:(\d+)', line)
            architecture = arch.group(1) if arch else architecture
            kernel = name_of(function.group(1)) if function else kernel
            if used and kernel:
                row = most[os.path.basename(path)[:-5], kernel, architecture]
                row[:] = map(max, row, map(int, used.groups()))
    print('%-12s %-24s %-7s %9s %6s %7s %6s' % ('file', 'kernel', 'arch', 'registers', 'stack', 'shared', 'blocks'))
    for (file, kernel, architecture), (registers, stack, shared) in sorted(most.items()):
        blocks = min(65536 // (256 * max(registers, 1)), 8)
        print('%-12s %-24s %-7s %9d %6d %7d %6d' % (file, kernel, architecture, registers, stack, shared, blocks))


if __name__ == '__main__':
    main()
