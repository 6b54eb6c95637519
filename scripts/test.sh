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
# All targets are all but those that are left out of a plain `cargo test`.
check "lint of the tests on Kafka" cargo clippy --quiet --test kafka -- -D warnings
check "core without the outside world" cargo check --quiet --no-default-features --lib

printf '== tests\n'
# The summary line of each test binary is counted: "test result: ok. 12 passed; 0 failed; ...".
cargo test --no-fail-fast "$@" 2>&1 | tee "$output" || broken+=("tests")

# Arguments choose among the tests above; without any, everything runs, on a real broker too.
if [ $# = 0 ]; then
    printf '== tests on Apache Kafka\n'
    if scripts/kafka.sh libs >/dev/null; then
        cargo test --no-fail-fast --test kafka 2>&1 | tee -a "$output" || broken+=("tests")
    elif [ "${CI:-}" = true ]; then
        broken+=("Apache Kafka, without which its tests cannot run")
    else
        without_kafka=$(cargo test --quiet --test kafka -- --list 2>/dev/null | sed -n 's/: test$//p')
    fi
fi
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
if [ -n "${without_kafka:-}" ]; then
    printf '\n*** THESE TESTS DID NOT RUN, because no Apache Kafka can be started here (the reason is above):\n%s\n' "$without_kafka"
    printf '*** They need Java 17 and Maven: apt-get install -y --no-install-recommends openjdk-17-jdk-headless maven\n\n'
fi
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
