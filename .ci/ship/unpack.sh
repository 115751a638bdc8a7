#!/bin/sh
# Quipu, a folder in one file: unpacks it once, where QUIPU_UNPACK_DIR says or into the user's cache, and runs it.
set -eu
if [ -z "${QUIPU_UNPACK_DIR-}${XDG_CACHE_HOME-}${HOME-}" ]; then
    echo "quipu: QUIPU_UNPACK_DIR must name a folder to unpack into, for there is no HOME" >&2
    exit 1
fi
where=${QUIPU_UNPACK_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/quipu}
home=$where/@ID@
if [ ! -x "$home/quipu" ]; then
    fail() {
        echo "quipu: $1; QUIPU_UNPACK_DIR may name another folder" >&2
        exit 1
    }
    umask 077
    mkdir -p "$where" 2>/dev/null && new=$(mktemp -d "$where/.new.XXXXXX" 2>/dev/null) || fail "cannot write to $where"
    trap 'rm -rf "$new"' EXIT
    trap 'exit 1' HUP INT TERM
    tail -n +@LINES@ "$0" | tar -xzf - -C "$new" || fail "cannot unpack into $where"
    sync -f "$new" 2>/dev/null || sync
    # The first of several starters wins; the others find its folder in their way, which holds the same.
    # Only GNU's mv has -T; without it the loser of a race finds its folder inside the winner's.
    mv -T "$new" "$home" 2>/dev/null || [ -e "$home" ] || mv "$new" "$home" 2>/dev/null || [ -e "$home/quipu" ] ||
        fail "cannot move the unpacked files to $home"
    rm -rf "$new" "$home/${new##*/}"
    [ -x "$home/quipu" ] || fail "no program may run from $where"
fi
case $0 in # what a client that is set up to start it shall start: this file, not what it was unpacked to
/*) QUIPU_PROGRAM=$0 ;;
*) QUIPU_PROGRAM=$PWD/$0 ;;
esac
export QUIPU_PROGRAM
exec "$home/quipu" "$@"
