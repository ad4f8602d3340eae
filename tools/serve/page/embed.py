"""embed.py OUT FILE...: the files as arrays of C, which page.c looks up by name."""
import os
import sys


def main():
    with open(sys.argv[1], 'w', encoding='ascii') as out:
        out.write('/* Made by embed.py. */\n#include <stddef.h>\n\n#include "tools/serve/page/page.h"\n')
        names = []
        for path in sys.argv[2:]:
            with open(path, 'rb') as f:
                data = f.read()
            names.append((os.path.basename(path), len(data)))
            out.write('\nstatic const unsigned char file_%d[] = {\n' % len(names))
            for i in range(0, len(data), 24):
                out.write('    %s,\n' % ', '.join(map(str, data[i:i + 24])))
            out.write('};\n')
        out.write('\nconst page_file page_files[] = {\n')
        for i, (name, size) in enumerate(names):
            out.write('    {"%s", file_%d, %d},\n' % (name, i + 1, size))
        out.write('    {NULL, NULL, 0},\n};\n')


main()
