#!/usr/bin/env bash
# Runs the unit tests of the crates below the loaders under Miri, which finds undefined behaviour in unsafe code.
# Usage: scripts/miri.sh [PACKAGE...]
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
packages=("$@")
[ ${#packages[@]} -eq 0 ] && packages=(vmfb-memory vmfb-bytecode vmfb-vm vmfb-module-hal-loader)

if ! cargo +nightly miri --version >/dev/null 2>&1; then
  command -v rustup >/dev/null && rustup toolchain install nightly --profile minimal --component miri --component rust-src
fi
if ! cargo +nightly miri --version >/dev/null 2>&1; then
  missing "Miri" "rustup toolchain install nightly --profile minimal --component miri --component rust-src"
  finish
fi

# Tests read files and clocks; interpreted code is slow, so that property tests try fewer cases. Alignment is checked by address,
# as the code does; the symbolic check would have every address in a vector of bytes be unaligned. Miri's emulation of weak memory
# ends with an internal error where bytes are accessed as words of several widths, as shared storage is, one thread after the other.
export MIRIFLAGS="${MIRIFLAGS:--Zmiri-disable-isolation -Zmiri-strict-provenance -Zmiri-disable-weak-memory-emulation}"
export PROPTEST_CASES=${PROPTEST_CASES:-4}
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/miri
for package in "${packages[@]}"; do
  say "Miri: $package"
  # Tests of modules read constants of the program, which are shared references from the start; see `Storage::from_static`.
  borrows=
  [ "$package" = vmfb-module-hal-loader ] && borrows=-Zmiri-tree-borrows
  MIRIFLAGS="$MIRIFLAGS $borrows" try_tests cargo +nightly miri test -p "$package" --lib
done
finish
