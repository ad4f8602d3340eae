#!/bin/sh
# install_library.sh: have ld.so find the library that was installed. Meson calls it.
[ -z "$DESTDIR" ] || exit 0
PATH=$PATH:/usr/sbin:/sbin
[ "$(id -u)" = 0 ] && ldconfig 2>/dev/null || echo "gpuidx: now run ldconfig as root, so that ld.so finds the library"
