#!/bin/bash
# Install the packages of packages.txt that this system lacks, asking nobody: dpkg says which, apt-get fetches them.
# Usage: install_packages.sh [check]: those that only tests need, too.
set -eu
list=$(dirname "$0")/../packages.txt
without='# check:'
[ "${1:-}" != check ] || without='^$'
packages=$(grep -v "$without" "$list" | sed 's/#.*//' | tr -s ' \n' ' ')

if ! command -v dpkg-query >/dev/null; then
    echo "deps: this is no Debian system; install what these are called here: $packages"
    exit 0
fi

missing=
for package in $packages; do
    state=$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
    echo "deps: all packages of packages.txt are installed"
    exit 0
fi

if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null; then
    as_root=sudo
    [ -t 0 ] || as_root='sudo -n'
else
    echo "deps: not root, and there is no sudo; ask for these packages:$missing" >&2
    exit 1
fi
echo "deps: installing$missing"
$as_root apt-get -qq update
$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install $missing >/dev/null
