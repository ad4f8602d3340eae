#!/bin/sh
# Install into an empty folder, then compile embed.c against what lies there, shared and static, and run it.
#   run.sh BUILD-DIR CC     (from Meson, which has built everything before)
set -eu
build=$1 cc=$2
here=$(cd "$(dirname "$0")" && pwd)
dest=$(mktemp -d)
trap 'rm -rf "$dest"' EXIT

step() { echo "embed: $*"; }

step "meson install"
meson install -C "$build" --no-rebuild --destdir "$dest" >"$dest/log" || { cat "$dest/log"; exit 1; }
pc=$(find "$dest" -name gpuidx.pc)
prefix=$(sed -n 's/^prefix=//p' "$pc")
root=$dest$prefix
for file in include/gpuidx.h include/gpuidx_advanced.h share/man/man1/gpuidx.1 share/man/man1/gpuidx-query.1 \
    bin/gpuidx bin/gpuidx-bench share/man/man1/gpuidx-bench-codecs.1 \
    share/bash-completion/completions/gpuidx share/zsh/site-functions/_gpuidx \
    share/fish/vendor_completions.d/gpuidx.fish; do
    [ -s "$root/$file" ] || { echo "embed: $file is not installed"; exit 1; }
done
for command in $("$root/bin/gpuidx" help --list) $("$root/bin/gpuidx-bench" help --list | sed s/^/bench-/); do
    [ -s "$root/share/man/man1/gpuidx-$command.1" ] || { echo "embed: gpuidx-$command.1 is not installed"; exit 1; }
done

# the file as it would be without the folder before its prefix
mkdir "$dest/pc"
sed "s|^prefix=.*|prefix=$root|" "$pc" >"$dest/pc/gpuidx.pc"
export PKG_CONFIG_LIBDIR=$dest/pc # and no other: who links the library needs the .pc file of nothing else
lib=$(pkg-config --variable=libdir gpuidx)

if [ "$prefix" = /usr/local ] && [ -e /etc/debian_version ]; then
    step "on Debian it lies where pkg-config and ld.so look"
    looks=$(PKG_CONFIG_LIBDIR= pkg-config --variable=pc_path pkg-config)
    case :$looks: in
        *:"${pc#"$dest"}":* | *:"$(dirname "${pc#"$dest"}")":*) ;;
        *) echo "embed: pkg-config looks in $looks, and the file is ${pc#"$dest"}"; exit 1 ;;
    esac
    cat /etc/ld.so.conf /etc/ld.so.conf.d/*.conf | grep -qx "${lib#"$dest"}" ||
        { echo "embed: ld.so does not look in ${lib#"$dest"}"; exit 1; }
fi

step "only the public interface is exported"
nm -D --defined-only "$lib/libgpuidx.so" | while read -r _ _ name; do
    name=${name%%@*}
    grep -qw "$name" "$root"/include/gpuidx*.h ||
        { echo "embed: $name is exported and in no public header"; exit 1; }
done

step "the headers are plain C and C++"
echo '#include <gpuidx_advanced.h>' >"$dest/header.c"
include=$root/include
for name in $(sed -n 's/^#define GX_\([A-Z]*_OPTIONS\) .*/\1/p' "$include"/gpuidx*.h); do
    type=gx_$(echo "$name" | tr A-Z a-z)
    echo "extern $type $name; $type $name = GX_$name;" >>"$dest/header.c"
done
grep -q GX_REPLAY_OPTIONS "$dest/header.c"
# and all that the library fills in
{
    echo 'int uses(void); int uses(void) {'
    sed -n '/^typedef struct gx_[a-z0-9_]* {/{s/^typedef struct \(gx_[a-z0-9_]*\) {/\1/;h;n;/^    size_t size;/{g;p}}' \
        "$include"/gpuidx*.h | while read -r type; do
        echo "$type a_$type = GX_SIZED($type); if (a_$type.size != sizeof(a_$type)) return 1;"
    done
    echo 'uint32_t docids[1], n; float scores[1]; gx_results results = GX_RESULTS(docids, scores, &n);'
    echo 'return (int)results.size; }'
} >>"$dest/header.c"
grep -q 'GX_SIZED(gx_builder_counts)' "$dest/header.c"
$cc -std=c11 -Wall -Wextra -pedantic -Werror -fsyntax-only $(pkg-config --cflags gpuidx) "$dest/header.c"
if command -v c++ >/dev/null; then
    c++ -std=c++17 -Wall -Wextra -pedantic -Werror -fsyntax-only -x c++ $(pkg-config --cflags gpuidx) "$dest/header.c"
fi

answer() { # what both programs say: c holds both terms, a and b one each; a's text is the shorter
    cat >"$dest/wanted" <<'END'
1 c
2 a
3 b
docids by gpupfd128
three: in no document
thread: in 2 documents, 2 times: a 1, c 1
index: in 2 documents, 2 times: b 1, c 1
END
    sed 's/^\([0-9] [a-z]\) .*/\1/' "$1" | diff "$dest/wanted" - || { echo "embed: another answer"; exit 1; }
}

step "shared"
$cc -std=c11 -Wall -Wextra -Werror "$here/embed.c" -o "$dest/shared" $(pkg-config --cflags --libs gpuidx)
LD_LIBRARY_PATH=$lib "$dest/shared" "$dest/shared.gx" >"$dest/shared.out"
answer "$dest/shared.out"
LD_LIBRARY_PATH=$lib ldd "$dest/shared" | grep -q libgpuidx

step "static"
# libgpuidx itself static, what it needs shared: their static forms need what is rarely installed
$cc -std=c11 -Wall -Wextra -Werror "$here/embed.c" -o "$dest/static" \
  $(pkg-config --cflags gpuidx) -L"$lib" -l:libgpuidx.a \
    $(pkg-config --static --libs gpuidx | sed 's/-lgpuidx//')
"$dest/static" "$dest/static.gx" >"$dest/static.out"
answer "$dest/static.out"
cmp "$dest/shared.out" "$dest/static.out"
! ldd "$dest/static" | grep -q libgpuidx

step "the installed program reads the same index"
"$root/bin/gpuidx" query -q --format=tsv "$dest/static.gx" 'index of threads' >"$dest/query.out"
[ "$(cut -f2 "$dest/query.out" | tr '\n' ' ')" = 'c a b ' ]

step "README's program"
sed -n '/^## From Python and from C/,/^## The map/s/^    //p' "$here/../../README.md" >"$dest/search.c"
(cd "$dest" && $cc -Wall -Wextra -Werror search.c -o search $(pkg-config --static --cflags --libs gpuidx) &&
    "$root/bin/gpuidx" build -q --analyzer=simple -f plain search.c -o scifact.gx &&
    LD_LIBRARY_PATH=$lib ./search >search.out)
grep -q '^[0-9]* [0-9.]*$' "$dest/search.out" # the line with the query is found
