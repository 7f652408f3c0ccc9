#!/usr/bin/env bash
# Runs corpus modules with machine code under valgrind: a second opinion on the ELF path, where AddressSanitizer does
# not see what the module's own code does.
# Usage: scripts/valgrind.sh [FILTER...]      a filter is a part of a test's name
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
filters=("$@")
[ ${#filters[@]} -eq 0 ] && filters=(20230209.425/inline-elf/ 20240226.813/inline-elf/ 3.13.0/inline-elf/)

if ! command -v valgrind >/dev/null; then
  missing "valgrind" "apt-get install valgrind"
  finish
fi

# The tests are run as a binary: `cargo test` tells which one.
say "Building the corpus tests"
binary=$(cargo test --release -p vmfb --test corpus --no-run --message-format=json |
  sed -n 's/.*"target":{[^}]*"name":"corpus".*"executable":"\([^"]*\)".*/\1/p' | tail -1)
if [ -z "$binary" ]; then
  try false "building the test target corpus"
  finish
fi
for filter in "${filters[@]}"; do
  say "valgrind: $filter"
  try_tests valgrind --quiet --error-exitcode=1 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite "$binary" --test-threads=1 "$filter"
done
finish
