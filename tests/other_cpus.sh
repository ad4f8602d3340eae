#!/usr/bin/env bash
# other_cpus.sh PROGRAM CORPUS.jsonl: the program's answers on processors that lack what this one has are the same, byte
# for byte: one of 2006 with SSSE3, one of 2008 with SSE4.2 (x86-64-v2), one of 2013 with AVX2. qemu-x86_64 stands for
# them (Debian: qemu-user); without it, or elsewhere than on x86-64, this is skipped.
set -euo pipefail
program=$1 corpus=$2
[ "$(uname -m)" = x86_64 ] && command -v qemu-x86_64 >/dev/null || { echo 'skipped: no qemu-x86_64'; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
answers() { # FILE COMMAND...
  local file=$1
  shift
  "$@" build -q --positions "$corpus" -o "$work/x.gx" --force 2>>"$work/warnings"
  for query in 'merge find' 'skip list gpu' '"merge find" compression'; do
    "$@" query -q --engine=cpu -k 20 --format=tsv "$work/x.gx" "$query" 2>>"$work/warnings"
  done >"$file"
}
answers "$work/here" "$program"
[ -s "$work/here" ] || { echo 'no answers'; exit 1; }
for cpu in core2duo Nehalem Haswell; do
  answers "$work/there" qemu-x86_64 -cpu "$cpu" "$program" || { tail -5 "$work/warnings"; echo "$cpu: fails"; exit 1; }
  cmp "$work/here" "$work/there" || { echo "$cpu: other answers"; exit 1; }
done
