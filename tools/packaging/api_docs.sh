#!/usr/bin/env bash
# api_docs.sh [FOLDER [BUILD]]: the C and the Python interface as static pages, in FOLDER (dist/docs): c/index.html by
# doxygen (Debian: doxygen), python/gpuidx.html by pdoc (of PyPI, in a virtual environment). BUILD has libgpuidx.so
# (build).
set -euo pipefail
out=$(realpath -m "${1:-dist/docs}")
cd "$(dirname "$0")/../.."
build=$(realpath "${2:-build}")
command -v doxygen >/dev/null || { echo 'api_docs.sh: doxygen is missing (Debian: doxygen)' >&2; exit 1; }
[ -e "$build/libgpuidx.so" ] || { echo "api_docs.sh: $build has no libgpuidx.so; build it first" >&2; exit 1; }
version=$(sed -n "s/^ *version: '\([0-9.]*\)',/\1/p" meson.build | head -1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"

# The headers' comments are plain; doxygen is shown them as its own: those before a declaration, and those behind one.
cat >"$work/filter" <<'END'
#!/bin/sh
exec sed -E -e '1s~^/\* ~/** @file ~' -e 's~^( *)/\* ~\1/** ~' -e 's~([;{},][^/]*|[A-Z_0-9]) +/\* ~\1 /**< ~' "$1"
END
chmod +x "$work/filter"
doxygen - >"$work/log" 2>&1 <<END || { tail -20 "$work/log" >&2; exit 1; }
PROJECT_NAME = gpuidx
PROJECT_NUMBER = $version
PROJECT_BRIEF = "the C interface"
INPUT = engine/api
FILE_PATTERNS = *.h
INPUT_FILTER = $work/filter
OUTPUT_DIRECTORY = $work/doxygen
EXTRACT_ALL = YES
OPTIMIZE_OUTPUT_FOR_C = YES
JAVADOC_AUTOBRIEF = YES
TYPEDEF_HIDES_STRUCT = YES
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = GX_API= __attribute__(x)=
GENERATE_LATEX = NO
HTML_TIMESTAMP = NO
HTML_COLORSTYLE = LIGHT
HAVE_DOT = NO
QUIET = YES
WARN_IF_UNDOCUMENTED = NO
WARN_AS_ERROR = NO
END
rm -rf "$out/c"
cp -r "$work/doxygen/html" "$out/c"

python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check pdoc cffi numpy
cp -r tools/python/gpuidx "$work/gpuidx"
# shellcheck disable=SC2046
"$work/venv/bin/python" tools/python/make_bindings.py "$work/gpuidx/_bindings.py" $(
  sed -n "/^public_headers/,/)/p" engine/meson.build | grep -o "api/[a-z_]*\.h" | sed 's,^,engine/,')
rm -f "$work/gpuidx/terrier.py" # which wants PyTerrier
(cd "$work" && GPUIDX_LIBRARY=$build/libgpuidx.so venv/bin/pdoc --no-show-source -o "$out/python" ./gpuidx)
echo "$out/c/index.html: $(find "$out/c" -name '*.html' | wc -l) pages; $out/python/gpuidx.html"
