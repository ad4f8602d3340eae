#!/usr/bin/env bash
# setup.sh: everything that building and testing gpuidx needs, then the build itself, in build/.
#
#   tools/setup.sh              install what is missing, and build
#   tools/setup.sh --minimal    the same without what only the tests need
#   tools/setup.sh --mpi        and gpuidx-mpi, for several hosts, with Open MPI
#   tools/setup.sh --python     install what `pip install .` needs, and do not build: pip does
#   tools/setup.sh --check      only say what is missing; exit 1 if anything is. With --minimal before it: of that
#
# On Debian and Ubuntu, packages are installed with apt, as root or through sudo. Elsewhere, or without the right to
# install, it says what is missing and stops. Where nvcc is found the GPU engine is built too; it is never installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# What is needed: a name for people, a command that succeeds where it is there, Debian's package.
has_header() { printf '#include <%s>\n' "$1" | cc -E -x c - >/dev/null 2>&1; }
has_nanopb() { has_header pb_decode.h || has_header nanopb/pb_decode.h; }
has_meson() {
  command -v meson >/dev/null && printf '1.0.0\n%s\n' "$(meson --version)" | sort -CV
}
needs=(
  'C compiler|command -v cc|gcc'
  'C library headers|has_header stdio.h|libc6-dev'
  'meson 1.0 or newer|has_meson|meson'
  'ninja|command -v ninja|ninja-build'
  'pkg-config|command -v pkg-config|pkg-config'
  'libarchive|pkg-config --exists libarchive|libarchive-dev'
  'zlib|pkg-config --exists zlib|zlib1g-dev'
  'libbz2|has_header bzlib.h|libbz2-dev'
  'liblzma|pkg-config --exists liblzma|liblzma-dev'
  'libzstd|pkg-config --exists libzstd|libzstd-dev'
  'libbrotli|pkg-config --exists libbrotlidec|libbrotli-dev'
  'ICU|pkg-config --exists icu-uc|libicu-dev'
  'libxxhash|pkg-config --exists libxxhash|libxxhash-dev'
  'libutf8proc|pkg-config --exists libutf8proc|libutf8proc-dev'
  'jansson|pkg-config --exists jansson|libjansson-dev'
  'libstemmer|has_header libstemmer.h|libstemmer-dev'
  'nanopb|has_nanopb|libnanopb-dev'
  'libedit|pkg-config --exists libedit|libedit-dev'
  'libmicrohttpd|pkg-config --exists libmicrohttpd|libmicrohttpd-dev'
  'libcurl|pkg-config --exists libcurl|libcurl4-openssl-dev'
  'cmocka (tests)|pkg-config --exists cmocka|libcmocka-dev'
  'CRoaring (tests)|has_header roaring/roaring.h|libroaring-dev'
  'bats (tests)|command -v bats|bats'
  'strace (tests)|command -v strace|strace'
  'mandoc (tests)|command -v mandoc|mandoc'
  'Python (tests)|command -v python3|python3'
  'Python virtual environments (tests)|python3 -c "import ensurepip, venv"|python3-venv'
  'C++ compiler (nvcc, tests)|command -v c++|g++'
  'xz (tests)|command -v xz|xz-utils'
  'bzip2 (tests)|command -v bzip2|bzip2'
)

minimal=false check=false python=false mpi=false
for word in "$@"; do
  case $word in
    --minimal) minimal=true ;;
    --mpi) mpi=true ;;
    --python) minimal=true python=true ;;
    --check) check=true ;;
    *) echo "gpuidx: $word: there is no such flag; there are --minimal, --mpi, --python and --check" >&2; exit 2 ;;
  esac
done
! $mpi || needs+=('Open MPI|pkg-config --exists ompi-c|libopenmpi-dev' 'mpirun|command -v mpirun|openmpi-bin')
if $minimal; then # nvcc needs a C++ compiler too
  command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ] || needs=("${needs[@]/*nvcc, tests*/}")
  ! $python || needs=("${needs[@]/#'Python (tests)'/Python}")
  ! $python || needs=("${needs[@]/#'Python virtual environments (tests)'/Python virtual environments}")
  needs=("${needs[@]/*'(tests)'*/}")
fi

missing_names=() missing_packages=()
look() {
  missing_names=() missing_packages=()
  local need name test package
  for need in "${needs[@]}"; do
    IFS='|' read -r name test package <<<"$need"
    [ "$need" ] || continue
    if ! eval "$test" >/dev/null 2>&1; then
      missing_names+=("$name")
      missing_packages+=("$package")
    fi
  done
}

stop() {
  {
    printf 'gpuidx: %s\n\nMissing:\n' "$1"
    for i in "${!missing_names[@]}"; do
      printf '  %-26s %s\n' "${missing_names[$i]}" "(Debian, Ubuntu: ${missing_packages[$i]})"
    done
    printf '\nOn Debian 12 or Ubuntu 24.04:\n  sudo apt-get install %s\n' "${missing_packages[*]}"
  } >&2
  exit 1
}

# The command that gains the right to install: nothing, or sudo. Fails where there is none.
privilege() {
  if [ "$(id -u)" = 0 ]; then
    echo env
  elif command -v sudo >/dev/null && { sudo -n true 2>/dev/null || [ -t 0 ]; }; then
    echo sudo
  else
    return 1
  fi
}

install_missing() {
  local as
  command -v apt-get >/dev/null || stop 'this system has no apt; please install what is missing by its own means'
  as=$(privilege) || stop 'packages are missing, and there is no right to install them (neither root nor sudo)'
  echo "gpuidx: installing ${missing_packages[*]}" >&2
  $as apt-get update -q </dev/null >&2 || echo 'gpuidx: apt-get update failed; trying with the lists that are there' >&2
  $as env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing_packages[@]}" </dev/null >&2 ||
    stop 'apt-get could not install the packages'
}

build() {
  if [ -f build/build.ninja ]; then
    if ! $minimal && meson configure build 2>/dev/null | grep -qE '^ *tests +disabled'; then
      meson configure build -Dtests=auto
    fi
    ! $mpi || meson configure build -Dmpi=enabled
    meson setup --reconfigure build >/dev/null 2>&1 || meson setup --wipe build
  else
    rm -rf build
    meson setup build $($minimal && echo -Dtests=disabled) $($mpi && echo -Dmpi=enabled)
  fi
  meson compile -C build
}

look
if $check; then
  [ ${#missing_names[@]} = 0 ] || stop 'not everything that gpuidx needs is here'
  exit 0
fi
if [ ${#missing_names[@]} -gt 0 ]; then
  install_missing
  look
  [ ${#missing_names[@]} = 0 ] || stop 'this is missing although apt-get has installed its packages'
fi
$python || build >&2
