#!/usr/bin/env bash
# Runs the tests with AddressSanitizer, which finds accesses outside of allocations and leaks.
# Usage: scripts/address_sanitizer.sh [CARGO TEST ARGUMENT...]      default: --workspace --no-fail-fast
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
arguments=("$@")
[ ${#arguments[@]} -eq 0 ] && arguments=(--workspace --no-fail-fast)

target=$(rustc -vV | sed -n 's/^host: //p')
case $target in
  x86_64-unknown-linux-gnu | aarch64-unknown-linux-gnu | x86_64-apple-darwin | aarch64-apple-darwin) ;;
  *)
    missing "AddressSanitizer for $target" "use Linux or macOS on x86-64 or aarch64"
    finish
    ;;
esac

# The flag is unstable; the variable lets a stable compiler take it. `--target` keeps build scripts free of it.
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="${RUSTFLAGS:-} -Zsanitizer=address -Cforce-frame-pointers=yes"
export RUSTDOCFLAGS="${RUSTDOCFLAGS:-} -Zsanitizer=address"
# An allocation that cannot be had is an ordinary error here: the allocator has to answer null as usual.
export ASAN_OPTIONS="${ASAN_OPTIONS:-detect_stack_use_after_return=1:strict_string_checks=1:allocator_may_return_null=1:detect_leaks=1}"
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/address-sanitizer

say "AddressSanitizer: cargo test ${arguments[*]}"
try_tests cargo test --target "$target" --profile "${PROFILE:-dev}" "${arguments[@]}"
finish
