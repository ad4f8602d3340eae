#!/usr/bin/env bash
# test.sh [PYTHON]: build the package's wheel in a clean virtual environment, install it in another, and run there its
# type check, its tests and the examples. Needs PyPI; exits with 77 (skipped) where it cannot be reached.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m venv "$work/build" || { echo "skipped: $python has no venv (Debian: python3-venv)"; exit 77; }
"$work/build/bin/pip" install -q --disable-pip-version-check build ||
    { echo "skipped: PyPI cannot be reached"; exit 77; }
"$work/build/bin/python" -m build -q --wheel -Csetup-args=-Dcuda="${CUDA:-disabled}" -o "$work" .
ls -l "$work"/*.whl
[ "$(stat -c %s "$work"/*.whl)" -lt 15000000 ]

"$python" -m venv "$work/use"
"$work/use/bin/pip" install -q --disable-pip-version-check "$work"/*.whl pytest pandas scipy tqdm mypy ir-measures
# PyTerrier's tests run where it can be installed.
"$work/use/bin/pip" install -q --disable-pip-version-check pyterrier ||
    echo "PyTerrier cannot be installed; its tests are skipped"
data=$PWD/tests/data/scifact examples=$PWD/tools/python/examples tests=$PWD/tools/python/tests
"$work/use/bin/mypy"
cd "$work"
GX_TEST_DATA=${data%/scifact} "$work/use/bin/python" -m pytest -q -p no:cacheprovider "$tests"
"$work/use/bin/gpuidx" build -q "$data/corpus.jsonl.xz" -o scifact.gx --store=text
"$work/use/bin/python" "$examples/evaluate_scifact.py" "$data" | tee evaluated
grep -q 'nDCG@10 *0.6777' evaluated
"$work/use/bin/python" "$examples/tune_bm25.py" scifact.gx "$data/queries.tsv" "$data/qrels.txt"
"$work/use/bin/python" "$examples/hard_negatives.py" scifact.gx "$data/queries.tsv" "$data/qrels.txt" >negatives
[ "$(wc -l <negatives)" -ge 300 ]
"$work/use/bin/python" "$examples/retriever.py" scifact.gx vitamin D deficiency
"$work/use/bin/python" "$examples/sparse_encoder.py"
