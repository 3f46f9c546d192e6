#!/bin/sh
# Runs a command in a box of its own: private network, processes and mounts, which the kernel takes down
# with it, whatever happens inside. As root or, where user namespaces are allowed, as anyone.
set -eu
user=
[ "$(id -u)" -eq 0 ] || user='--user --map-root-user'
# shellcheck disable=SC2086
exec unshare $user --mount --net --pid --fork --kill-child=KILL --mount-proc sh -c '
  mount -t tmpfs none /run && mkdir -p /run/netns && ip link set lo up && BUSHEL_BOX=1 exec "$@"' box "$@"
