#!/usr/bin/env bash
# demo.sh [VENV]: from a fresh clone to SciFact searched from Python. Installs what is missing (as root or through
# sudo), makes a virtual environment in VENV (default: a temporary one), installs the package there with
# `pip install .`, and builds, searches and evaluates SciFact.
set -euo pipefail
cd "$(dirname "$0")/../.."
tools/setup.sh --python
if [ $# -gt 0 ]; then
  venv=$1
else
  venv=$(mktemp -d)
  trap 'rm -rf "$venv"' EXIT
fi
python3 -m venv "$venv"
"$venv/bin/pip" install -q . ir-measures
"$venv/bin/python" tools/python/examples/evaluate_scifact.py tests/data/scifact
