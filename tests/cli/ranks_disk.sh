#!/bin/bash
# A full disk is a warning, and the training of all ranks goes on; only the last save is an error. The checkpoint that
# was there stays. The arguments are the program and mpiexec.
. "$(dirname "$0")/setup_ranks.sh"

disk=$folder/disk
mkdir "$disk"
[ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=1m tmpfs "$disk" 2>/dev/null || finish # nobody else may make one
trap 'umount "$disk"; rm -rf "$folder"' EXIT
for ranks in 2 4; do
    rm -rf "$disk/run"
    expect 7 timeout 40 "$launch" -n $ranks "$convoy" $run --steps 15 --out "$disk/run"
    [ "$(grep -c '^warning: .*the disk is full' err)" -eq 2 ] || fail "$ranks ranks: no two warnings: $(cat err)"
    says_once "the disk is full"
done
finish
