#!/bin/sh
# Compares the contracts of a commit with those of the working tree.
#   contract-diff.sh REV DIR [options of `toolgate contract diff`]
# The exit code is that of `toolgate contract diff`: 4 where a change needs a version that it does not have.
set -eu
rev=$1
dir=$2
shift 2
if ! git rev-parse --quiet --verify "$rev:$dir" > /dev/null; then
    echo "contract-diff: $rev has no $dir, so there is nothing to compare with" >&2
    exit 0
fi
before=$(mktemp -d)
trap 'rm -rf "$before"' EXIT
git archive --format=tar "$rev" -- "$dir" > "$before/tree.tar"
tar -xf "$before/tree.tar" -C "$before"
"${TOOLGATE:-toolgate}" contract diff "$before/$dir" "$dir" "$@"
