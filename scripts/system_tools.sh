#!/usr/bin/env bash
# Sees to it that the tools of the system which some tests need are there: strace, which records what is written and
# synced, and bubblewrap, which shuts tools in. Installs what it can (root and apt), says loudly what is missing, and fails
# where CI demands it.
set -euo pipefail

lacking() {
    for pair in strace:strace bwrap:bubblewrap; do
        command -v "${pair%%:*}" >/dev/null || echo "${pair##*:}"
    done
}

[ -z "$(lacking)" ] && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "==> $(lacking | xargs)"
    export DEBIAN_FRONTEND=noninteractive
    # shellcheck disable=SC2046  # several packages are several words
    apt-get install -qq -y $(lacking) >/dev/null 2>&1 ||
        { apt-get update -qq >/dev/null 2>&1 && apt-get install -qq -y $(lacking) >/dev/null 2>&1; } || true
fi
[ -z "$(lacking)" ] && exit 0

{
    echo "************************************************************************"
    echo "Missing, and not to be installed here: $(lacking | xargs)"
    echo "THE POWER LAW (strace) OR THE SANDBOX (bubblewrap) WILL NOT BE TESTED."
    echo "Install them: apt-get install $(lacking | xargs)"
    echo "************************************************************************"
} >&2
case "${CI:-}" in
    1 | true | True | TRUE | yes) exit 1 ;;
esac
