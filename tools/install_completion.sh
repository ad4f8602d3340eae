#!/bin/sh
# install_completion.sh SHELL FOLDER NAME: put a shell's completions where it looks. Meson calls it.
set -e
to=$MESON_INSTALL_DESTDIR_PREFIX/share/$2
mkdir -p "$to"
cp "$MESON_BUILD_ROOT/tools/completion-$1" "$to/$3"
chmod 644 "$to/$3"
