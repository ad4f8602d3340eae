#!/usr/bin/env bash
# release.sh [--out=FOLDER] [STEP...]: make and test what a release has, of the commit that is checked out, in FOLDER
# (dist). Without STEPs, all of them:
#
#   version       the version is the same in meson.build, the change log and debian/changelog
#   reproducible  two builds of the commit in different folders are equal byte for byte
#   abi           the library's interface against that of the last tag (abidiff of Debian's abigail-tools), and against
#                 debian/libgpuidx0.symbols
#   fixtures      this program reads the index files of every version (tests/data/versions)
#   source        gpuidx-VERSION.tar.xz
#   docs          the C and Python interfaces as pages
#   deb           Debian's packages, built in a clean Debian and installed in another, where SciFact is evaluated (root)
#   wheel         the wheel of this architecture, installed in a fresh environment, where SciFact is evaluated
#
#   --write-symbols, --write-fixtures
#                 write debian/libgpuidx0.symbols, tests/data/versions/VERSION anew instead: after the interface has
#                 grown, before a version is tagged
#
# A step that fails ends the run. Steps that are given run in the order of this list.
set -euo pipefail
cd "$(dirname "$0")/.."
top=$PWD out=$PWD/dist steps=() all=(version reproducible abi fixtures source docs deb wheel) write=()
for word; do
  case $word in
    --out=?*) out=$(realpath -m "${word#--out=}") ;;
    --write-symbols | --write-fixtures) write+=("${word#--write-}") ;;
    version | reproducible | abi | fixtures | source | docs | deb | wheel) steps+=("$word") ;;
    *)
      echo "release.sh: $word: there is no such step; there are ${all[*]}," \
        '--out=, --write-symbols, --write-fixtures' >&2
      exit 2
      ;;
  esac
done
[ ${#steps[@]} -gt 0 ] || [ ${#write[@]} -gt 0 ] || steps=("${all[@]}")
version=$(sed -n "s/^ *version: '\([0-9.]*\)',/\1/p" meson.build | head -1)
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
say() { printf '%-13s %s\n' "$1" "$2"; }
fail() { echo "release.sh: $1: $2" >&2; exit 1; }
tool() { command -v "$1" >/dev/null || fail "$step" "$1 is missing (Debian: $2)"; }

unpacked() { # FOLDER COMMIT: the commit's files
  mkdir -p "$1"
  git archive "$2" | tar -C "$1" -xf -
}
built() { # FOLDER TARGET...: built there as a release is
  local folder=$1
  shift
  (cd "$folder" && meson setup build -Dcuda="${CUDA:-disabled}" -Dtests=disabled >setup.log 2>&1 &&
    ninja -C build "$@" >build.log 2>&1) || { tail -5 "$folder"/*.log >&2; fail "$step" "$folder could not be built"; }
}
program() { # the program of the commit, built once
  [ -x "$work/first/build/tools/gpuidx" ] || {
    unpacked "$work/first" HEAD
    built "$work/first" libgpuidx.so.$version libgpuidx.a tools/gpuidx tools/gpuidx-bench
  }
}
scifact() { # COMMAND...: the program, evaluated
  local data=$top/tests/data/scifact folder
  folder=$(mktemp -d -p "$work")
  "$@" build -q "$data/corpus.jsonl.xz" -o "$folder/scifact.gx"
  "$@" replay -q "$folder/scifact.gx" "$data/queries.tsv" -k 1000 --run "$folder/run"
  "$@" eval -m ndcg@10 "$data/qrels.txt" "$folder/run" | awk '$2 == "all" { print $3 }'
}
exported() { # LIBRARY: what it exports, a name a line
  nm -D --defined-only "$1" | awk '{ print $3 }' | LC_ALL=C sort
}
symbols() {
  echo "libgpuidx.so.${version%%.*} libgpuidx0 #MINVER#"
  echo '* Build-Depends-Package: libgpuidx-dev'
  exported "$1" | sed "s/.*/ &@Base ${version}/"
}

do_version() {
  local log deb
  log=$(sed -n 's/^## \([0-9.]*\).*/\1/p' tools/packaging/CHANGELOG.md | head -1)
  deb=$(sed -n '1s/^gpuidx (\([0-9.]*\)-.*/\1/p' tools/packaging/debian/changelog)
  [ "$log" = "$version" ] || fail version "CHANGELOG.md begins with $log, meson.build says $version"
  [ "$deb" = "$version" ] || fail version "debian/changelog begins with $deb, meson.build says $version"
  [[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail version "$version is not MAJOR.MINOR.PATCH"
  say version "$version, commit $(git rev-parse --short=12 HEAD)"
}
do_reproducible() {
  local file
  program
  unpacked "$work/another/folder" HEAD
  built "$work/another/folder" libgpuidx.so.$version libgpuidx.a tools/gpuidx tools/gpuidx-bench
  for file in libgpuidx.so.$version libgpuidx.a tools/gpuidx tools/gpuidx-bench; do
    cmp "$work/first/build/$file" "$work/another/folder/build/$file" ||
      fail reproducible "$file differs between two builds"
  done
  say reproducible "the library, shared and static, and both programs: two builds equal, byte for byte"
}
do_abi() {
  local tag library=$work/first/build/libgpuidx.so.$version
  program
  symbols "$library" >"$work/symbols"
  # What is exported no more, and what is new.
  diff <(awk '/^ / { print $1 }' tools/packaging/debian/libgpuidx0.symbols) <(awk '/^ / { print $1 }' "$work/symbols") \
    >"$work/changed" || { cat "$work/changed" >&2
    fail abi 'debian/libgpuidx0.symbols is not what the library exports; see --write-symbols'; }
  tag=$(git describe --tags --abbrev=0 --match='v*' 2>/dev/null) || {
    say abi "$(grep -c '^ ' "$work/symbols") symbols, those of debian/libgpuidx0.symbols; no tag to compare with"
    return
  }
  tool abidiff abigail-tools
  local side
  for side in "$tag" HEAD; do
    unpacked "$work/abi/$side" "$side"
    (cd "$work/abi/$side" && meson setup build --buildtype=debugoptimized -Dcuda=disabled -Dtests=disabled >log 2>&1 &&
      ninja -C build libgpuidx.so >>log 2>&1) || fail abi "$side could not be built"
  done
  local status=0 # bit 2: a change; bit 3: one that breaks programs
  abidiff --no-added-syms --headers-dir1 "$work/abi/$tag/engine/api" --headers-dir2 "$work/abi/HEAD/engine/api" \
    "$work/abi/$tag/build/libgpuidx.so" "$work/abi/HEAD/build/libgpuidx.so" >"$out/abi.txt" || status=$?
  [ $((status & 3)) = 0 ] || fail abi 'abidiff itself failed'
  [ $((status & 8)) = 0 ] || { cat "$out/abi.txt" >&2; fail abi "the interface of $tag is broken"; }
  say abi "against $tag: $([ $status = 0 ] && echo 'the same' || echo 'compatible changes'), see $out/abi.txt"
}
do_fixtures() {
  program
  tests/versions.py "$work/first/build/tools/gpuidx" tests/data/versions
}
do_source() {
  git archive --format=tar --prefix="gpuidx-$version/" HEAD | xz -6 -T1 >"$out/gpuidx-$version.tar.xz"
  say source "$out/gpuidx-$version.tar.xz, $(stat -c %s "$out/gpuidx-$version.tar.xz") bytes"
}
do_docs() {
  tool doxygen doxygen
  program
  ln -sf libgpuidx.so.$version "$work/first/build/libgpuidx.so"
  say docs "$(tools/packaging/api_docs.sh "$out/docs" "$work/first/build" | tail -1)"
}
do_deb() {
  local ndcg
  tool debootstrap debootstrap
  [ "$(id -u)" = 0 ] || fail deb 'a clean Debian is made as root alone'
  tools/packaging/deb.sh "$out/deb" "$work/root" >"$out/deb.log" 2>&1 ||
    { tail -20 "$out/deb.log" >&2; fail deb 'the packages could not be made'; }
  tools/packaging/clean_root.sh "$work/bare" bookworm true >/dev/null
  cp "$out"/deb/*.deb "$work/bare/src"
  cp -r tests/data/scifact tools/packaging/debian/tests "$work/bare/src"
  tools/packaging/clean_root.sh "$work/bare" bookworm sh -euc '
    apt-get update -q && apt-get install -q -y --no-install-recommends ./*.deb
    mkdir -p tests/data; cp -r scifact tests/data
    tests/scifact && tests/python' >"$out/deb-use.log" 2>&1 || { tail -20 "$out/deb-use.log" >&2
    fail deb 'the installed packages do not work'; }
  ndcg=$(awk '$1 == "ndcg_cut_10" { print $3 }' "$out/deb-use.log")
  say deb "$(cd "$out/deb" && echo *.deb): installed in a bare Debian, nDCG@10 of SciFact $ndcg"
}
do_wheel() {
  local ndcg
  rm -f "$out"/*.whl
  tools/python/wheel.sh "$out" >"$out/wheel.log" 2>&1 ||
    { tail -20 "$out/wheel.log" >&2; fail wheel 'it could not be made'; }
  python3 -m venv "$work/use"
  "$work/use/bin/pip" install -q --disable-pip-version-check "$out"/gpuidx-*.whl
  ndcg=$(scifact "$work/use/bin/gpuidx")
  [[ $ndcg == 0.6777* ]] || fail wheel "nDCG@10 of SciFact is $ndcg, not 0.6777"
  say wheel "$(basename "$out"/gpuidx-*.whl), $(stat -c %s "$out"/gpuidx-*.whl) bytes, nDCG@10 of SciFact $ndcg"
}

for what in "${write[@]}"; do
  step=write-$what
  program
  case $what in
    symbols) symbols "$work/first/build/libgpuidx.so.$version" >tools/packaging/debian/libgpuidx0.symbols ;;
    fixtures) tests/versions.py --write "tests/data/versions/$version" "$work/first/build/tools/gpuidx" ;;
  esac
  say "$step" written
done
for step in "${all[@]}"; do
  [[ " ${steps[*]} " != *" $step "* ]] || "do_$step"
done
