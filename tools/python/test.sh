#!/usr/bin/env bash
# test.sh [PYTHON]: build the package's wheel in a clean virtual environment, install it in another, and run there its
# type check, its tests and the examples; then its tests with the oldest and the newest Python that are here, as a wheel
# serves all of them. Needs PyPI; exits with 77 (skipped) where it cannot be reached.
set -euo pipefail
cd "$(dirname "$0")/../.."
python=${1:-python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_COMPILE=1 PYTHONDONTWRITEBYTECODE=1
data=$PWD/tests/data/scifact examples=$PWD/tools/python/examples tests=$PWD/tools/python/tests
export GX_TEST_DATA=${data%/scifact}

"$python" -m venv "$work/build" || { echo "skipped: $python has no venv (Debian: python3-venv)"; exit 77; }
"$work/build/bin/pip" install -q --retries 1 --timeout 20 build wheel ||
    { echo "skipped: PyPI cannot be reached"; exit 77; }
# What the tests need is fetched while the wheel is built.
{
    "$python" -m venv "$work/use"
    "$work/use/bin/pip" install -q pytest pandas scipy tqdm mypy ir-measures cffi
    # The tests of PyTerrier and ir_datasets run where these can be installed.
    "$work/use/bin/pip" install -q pyterrier ir_datasets ||
        echo "PyTerrier and ir_datasets cannot be installed; their tests are skipped"
} &
fetching=$!
! command -v ccache >/dev/null || export CC="ccache ${CC:-cc}"
"$work/build/bin/python" -m build -q --wheel -Csetup-args=-Dcuda="${CUDA:-disabled}" -o "$work" .
"$work/build/bin/wheel" tags --remove --python-tag py3 --abi-tag none "$work"/gpuidx-*.whl
ls -l "$work"/*.whl
[ "$(stat -c %s "$work"/*.whl)" -lt 15000000 ]
wait "$fetching"
"$work/use/bin/pip" install -q "$work"/*.whl
"$work/use/bin/mypy" --cache-dir="$work/mypy"

# Other interpreters: "version path" a line, by version.
interpreters() {
    local candidate
    for candidate in $(compgen -c | grep -E '^(python3\.[0-9]+|pypy3)$') "$HOME"/.pyenv/versions/*/bin/python3; do
        "$candidate" -c 'import sys, venv, ensurepip
if sys.version_info >= (3, 9):
    print("%d.%d" % sys.version_info[:2], sys.executable)' 2>/dev/null || true
    done | sort -V | sort -u -V -k1,1
}

cd "$work"
"$work/use/bin/python" -m pytest -q -p no:cacheprovider -W ignore "$tests"
main=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
interpreters | grep -v "^$main " | sed -n '1p; $p' | uniq >others || true
[ -s others ] || echo "no other Python is here: the tests ran with $main alone"
while read -r version path; do
    "$path" -m venv "$work/python$version" && "$work/python$version/bin/pip" install -q "$work"/*.whl pytest || {
        echo "Python $version: numpy, cffi or pytest cannot be installed; skipped"
        continue
    }
    echo "Python $version:"
    "$work/python$version/bin/python" -m pytest -q -p no:cacheprovider "$tests"
done <others

PATH=$work/use/bin:$PATH
gpuidx build -q "$data/corpus.jsonl.xz" -o scifact.gx --store=text
python "$examples/evaluate_scifact.py" "$data" | tee evaluated
grep -q 'nDCG@10 *0.6777' evaluated
python "$examples/tune_bm25.py" scifact.gx "$data/queries.tsv" "$data/qrels.txt"
python "$examples/hard_negatives.py" scifact.gx "$data/queries.tsv" "$data/qrels.txt" >negatives
[ "$(wc -l <negatives)" -ge 300 ]
python "$examples/retriever.py" scifact.gx vitamin D deficiency
python "$examples/sparse_encoder.py"
python "$examples/shop.py" --products 20000 --bench
