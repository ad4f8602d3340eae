#!/usr/bin/env bash
# deb.sh [FOLDER [ROOT]]: Debian's packages of the commit that is checked out, in FOLDER (dist/deb): the source package,
# gpuidx, libgpuidx0, libgpuidx-dev and python3-gpuidx, and what lintian says of them.
#
# Without ROOT they are built on this system, which must have what debian/control names. With ROOT, in a clean Debian
# in that folder (clean_root.sh; needs root), where what is missing is installed. DEB_BUILD_OPTIONS goes to the build:
# `nocheck` leaves its tests out. The files are the same byte for byte whenever they are built of one commit on one
# version of Debian.
set -euo pipefail
here=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
out=$(realpath -m "${1:-dist/deb}") root=${2:-}
cd "$here/../.."
version=$(sed -n "s/^ *version: '\([0-9.]*\)',/\1/p" meson.build | head -1)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$out"
git archive --format=tar --prefix="gpuidx-$version/" HEAD | xz -6 -T1 >"$work/gpuidx_$version.orig.tar.xz"
tar -C "$work" -xf "$work/gpuidx_$version.orig.tar.xz"
cp -r "$work/gpuidx-$version/tools/packaging/debian" "$work/gpuidx-$version/debian"

cat >"$work/build" <<END
set -eu
export DEB_BUILD_OPTIONS='${DEB_BUILD_OPTIONS:-}'
cd gpuidx-$version
dpkg-buildpackage -us -uc
cd ..
if command -v lintian >/dev/null; then
  lintian --allow-root --fail-on error --tag-display-limit 0 gpuidx_*.changes
fi
END
if [ "$root" ]; then
  "$here/clean_root.sh" "$root" bookworm
  rm -rf "$root/src/deb"
  mkdir -p "$root/src/deb"
  cp -r "$work/." "$root/src/deb"
  "$here/clean_root.sh" "$root" bookworm sh -c "cd deb && apt-get update -q &&
    apt-get install -q -y --no-install-recommends build-essential fakeroot lintian &&
    apt-get build-dep -q -y --no-install-recommends ./gpuidx-$version && sh ./build"
  work_made=$root/src/deb
else
  (cd "$work" && sh ./build)
  work_made=$work
fi
cp "$work_made"/*.{deb,dsc,changes,buildinfo,xz} "$out"
ls -l "$out"
