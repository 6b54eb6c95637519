#!/usr/bin/env bash
# All checks and all tests, then one line: "N passed, N failed". Goes on after a failure, so that one
# run shows everything; ends with an error if anything failed or if no test ran.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/setup.sh

output=$(mktemp)
trap 'rm -f "$output"' EXIT
passed=0 failed=0 broken=()

check() {
    local name=$1
    shift
    printf '== %s\n' "$name"
    "$@" || broken+=("$name")
}

check "format" cargo fmt --check
check "lint" cargo clippy --quiet --all-targets -- -D warnings
check "core without the outside world" cargo check --quiet --no-default-features --lib

printf '== tests\n'
# The summary line of each test binary is counted: "test result: ok. 12 passed; 0 failed; ...".
cargo test --no-fail-fast "$@" 2>&1 | tee "$output" || broken+=("tests")
read -r passed failed < <(awk '
    /^test result: / { for (i = 2; i <= NF; i++) { if ($i ~ /^passed/) p += $(i - 1); if ($i ~ /^failed/) f += $(i - 1) } }
    END { print p + 0, f + 0 }' "$output")

if [ "$passed" = 0 ] && [ "$failed" = 0 ]; then
    broken+=("no test ran")
fi
for name in "${broken[@]+"${broken[@]}"}"; do
    printf 'FAILED: %s\n' "$name"
    # A check is counted as one failure; failed tests were counted one by one.
    [ "$name" = "tests" ] && [ "$failed" != 0 ] || failed=$((failed + 1))
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
