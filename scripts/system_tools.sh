#!/usr/bin/env bash
# Sees to it that the tools of the system which some tests need are there: strace, which records what is written and
# synced. Installs it where it can (root and apt), says loudly where it cannot, and fails where CI demands it.
set -euo pipefail

command -v strace >/dev/null && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "==> strace"
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -qq -y strace >/dev/null 2>&1 ||
        { apt-get update -qq >/dev/null 2>&1 && apt-get install -qq -y strace >/dev/null 2>&1; } || true
fi
command -v strace >/dev/null && exit 0

{
    echo "************************************************************************"
    echo "strace is missing and could not be installed here."
    echo "THE POWER LAW WILL NOT BE TESTED. Install it: apt-get install strace"
    echo "************************************************************************"
} >&2
case "${CI:-}" in
    1 | true | True | TRUE | yes) exit 1 ;;
esac
