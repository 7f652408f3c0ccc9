#!/usr/bin/env bash
# Changes the code one small place at a time with cargo-mutants, and says which changes no test notices.
# Usage: scripts/mutants.sh [--crate=PACKAGE]... [--file=GLOB]... [--shard=K/N] [--tests=PACKAGE]... [--timeout=SECONDS] [--list]
#   --crate    packages to change; all five of those below if none is named
#   --file     only files that match, for example --file=memory/src/span.rs
#   --shard    part K, counted from 0, of N parts
#   --tests    packages whose tests are run; those of the changed package if none is named
#   --timeout  for the tests of one mutant; five times what they take unchanged if it is not given
#   --list     only lists the mutants
# Reports are in target/mutants/PACKAGE/mutants.out: caught, missed, timeout, unviable. A mutant that was missed counts as a failure.
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"

packages=() tests=() options=()
for argument in "$@"; do
  value=${argument#*=}
  case $argument in
    --crate=*) packages+=("$value") ;;
    --file=*) options+=(--file "$value") ;;
    --shard=*) options+=(--shard "$value") ;;
    --tests=*) tests+=(--test-package "$value") ;;
    --timeout=*) options+=(--timeout "$value") ;;
    --list) options+=(--list) ;;
    *) echo "unknown option $argument; the first lines of this script say what there is" >&2; exit 2 ;;
  esac
done
[ ${#packages[@]} -eq 0 ] && packages=(vmfb-memory vmfb-bytecode vmfb-vm vmfb-module-hal-loader vmfb-loader-elf)

if ! cargo mutants --version >/dev/null 2>&1; then
  missing "cargo-mutants" "cargo install cargo-mutants --locked"
  finish
fi

for package in "${packages[@]}"; do
  say "mutants: $package"
  output=target/mutants/$package
  mkdir -p "$output"
  # In place, as a copy of the tree would lack what is built already; the tree must be clean, and is put back after each mutant.
  if [ -n "$(git status --porcelain --untracked-files=no 2>/dev/null)" ] && [[ " ${options[*]} " != *" --list "* ]]; then
    echo "there are changes that are not committed; mutants are made in place"
    failures=$((failures + 1))
    continue
  fi
  try cargo mutants --in-place --package "$package" "${tests[@]}" "${options[@]}" --output "$output" --colors never --no-times
done
finish
