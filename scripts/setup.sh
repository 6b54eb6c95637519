#!/usr/bin/env bash
# Looks for what a build needs and installs what it may: the pinned Rust toolchain through rustup.
# Whatever it cannot or may not install, it names, with the command that would.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

if ! command -v cargo >/dev/null && [ -x "${CARGO_HOME:-$HOME/.cargo}/bin/cargo" ]; then
    fail "cargo is installed but not on the PATH" "run: . \"${CARGO_HOME:-$HOME/.cargo}/env\""
fi
command -v cargo >/dev/null || fail \
    "Rust is missing" \
    "run: curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y --profile minimal" \
    "then: . \"\$HOME/.cargo/env\""

# SQLite is compiled from source, so a C compiler is needed.
if ! command -v cc >/dev/null && ! command -v gcc >/dev/null && ! command -v clang >/dev/null; then
    install="apt-get install -y --no-install-recommends gcc libc6-dev"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "setup: installing a C compiler: $install" >&2
        { apt-get update -qq && $install -qq; } >&2 || fail "could not install a C compiler" "run: $install"
    else
        fail "a C compiler is missing" "run: sudo $install"
    fi
fi

# librdkafka is compiled from source too, with TLS from the system's OpenSSL.
lacking=()
for pair in make:make g++:g++ pkg-config:pkg-config; do
    command -v "${pair%%:*}" >/dev/null || lacking+=("${pair##*:}")
done
has_header() { printf '#include <%s>\n' "$1" | cc -E - >/dev/null 2>&1; }
has_header openssl/ssl.h || lacking+=(libssl-dev)
has_header zlib.h || lacking+=(zlib1g-dev)
if [ "${#lacking[@]}" != 0 ]; then
    install="apt-get install -y --no-install-recommends ${lacking[*]}"
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "setup: installing what librdkafka is built with: $install" >&2
        { apt-get update -qq && $install -qq; } >&2 || fail "could not install it" "run: $install"
    else
        fail "librdkafka needs ${lacking[*]} to be built" "run: sudo $install"
    fi
fi

# rust-toolchain.toml pins the toolchain; rustup fetches it, with clippy and rustfmt, when asked.
wanted=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
if command -v rustup >/dev/null; then
    if ! { rustc --version && cargo clippy --version && cargo fmt --version; } >/dev/null 2>&1; then
        rustup toolchain install "$wanted" --profile minimal --component clippy --component rustfmt >&2 ||
            fail "rustup could not install Rust $wanted"
    fi
fi
found=$(cargo --version | cut -d' ' -f2) || fail "cargo does not run"
[ "$found" = "$wanted" ] || echo "setup: Rust $wanted is pinned, $found is used; install rustup to use the pinned one" >&2
