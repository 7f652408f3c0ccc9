#!/usr/bin/env bash
# Runs one fuzz target: scripts/fuzz.sh TARGET [SECONDS]. Needs a nightly compiler and cargo-fuzz (cargo install cargo-fuzz).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=${1:?a target: module, bytecode, dispatch_shim, elf, npy, cli_values}
seconds=${2:-60}
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
  echo "cargo-fuzz or the nightly compiler is missing: rustup toolchain install nightly && cargo install cargo-fuzz" >&2
  exit 3
fi
mkdir -p "fuzz/corpus/$target"
# Leaks are not looked for: the process under test ends with its caches full.
cargo +nightly fuzz run "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
  -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -detect_leaks=0 -print_final_stats=1
