#!/usr/bin/env bash
# clean_root.sh FOLDER [SUITE [COMMAND...]]: a bare Debian in FOLDER, made by debootstrap where nothing is there yet
# (SUITE: bookworm, trixie, .., or Ubuntu's with MIRROR set), and a command run in it, as root, with FOLDER/src as its
# folder. /proc and /dev are there for that command alone, in a mount namespace of its own, so that none is left behind.
# Needs root.
set -euo pipefail
root=$(realpath -m "$1") suite=${2:-bookworm}
shift
[ $# = 0 ] || shift
if [ ! -x "$root/usr/bin/apt-get" ]; then
  debootstrap --variant=minbase --include=ca-certificates "$suite" "$root" "${MIRROR:-http://deb.debian.org/debian}" >&2
  # Certificates that the administrator of this system added: a mirror may be behind them.
  mkdir -p "$root/usr/local/share/ca-certificates"
  cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates/"
  chroot "$root" update-ca-certificates >/dev/null 2>&1
fi
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
mkdir -p "$root/src"
[ $# = 0 ] || exec unshare --mount bash -c '
  root=$1; shift
  mount --bind /proc "$root/proc"; mount --bind /dev "$root/dev"
  exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    sh -c "cd /src && exec \"\$@\"" sh "$@"' bash "$root" "$@"
