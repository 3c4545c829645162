#!/bin/sh
# Installs Mainstay below a prefix, or removes it: ./install.sh [--prefix FOLDER] [--uninstall]
# The prefix is ~/.local, for root /usr/local. Sessions are in ~/.mainstay; they stay there.
set -eu
umask 022
if [ "$(id -u)" = 0 ]; then prefix=/usr/local; else prefix=$HOME/.local; fi
remove=
while [ $# -gt 0 ]; do
    case $1 in
        --prefix) shift; prefix=${1:?--prefix needs a folder} ;;
        --uninstall) remove=yes ;;
        *) sed -n 2,3p "$0" >&2; exit 2 ;;
    esac
    shift
done
case $prefix in /*) ;; *) prefix=$PWD/$prefix ;; esac
cd "$(dirname "$0")"

find bin share -type f | while read -r file; do
    target=$prefix/$file
    if [ "$remove" ]; then
        rm -f "$target"
        continue
    fi
    mkdir -p "$(dirname "$target")"
    case $file in
        *.service) sed "s|@BIN@|$prefix/bin|" "$file" > "$target.new" ;;
        *) cp "$file" "$target.new" ;;
    esac
    mv -f "$target.new" "$target" # a program that runs can be replaced, but not written to
done

if [ "$remove" ]; then
    rmdir "$prefix/share/doc/mainstay" 2>/dev/null || : # the other folders are not Mainstay's alone
    echo "Mainstay is removed from $prefix; its sessions are still in ~/.mainstay"
    exit
fi
echo "Mainstay is installed: $prefix/bin/mainstay"
case :$PATH: in *:"$prefix/bin":*) ;; *) echo "add $prefix/bin to your PATH" ;; esac
