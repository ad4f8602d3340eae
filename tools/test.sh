#!/usr/bin/env bash
# test.sh: sets everything up (tools/setup.sh) and runs every test. What follows goes to `meson test`.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/setup.sh
exec meson test -C build --print-errorlogs "$@"
