#!/usr/bin/env bash
# Runs one fuzz target under AddressSanitizer.
# Usage: scripts/fuzz.sh TARGET [--seconds=N | --cpu-seconds=N] [--build]      default: --seconds=60
#   --seconds      for so long by the clock
#   --cpu-seconds  in slices, until so much processor time is used: for machines that do other work besides
#   --build        only builds
#
# Needs Rust and a C++ compiler (libFuzzer is C++). The flags are those of `cargo fuzz`, which works too where it is installed; they
# are unstable, and RUSTC_BOOTSTRAP lets a stable compiler take them. One differs: `cargo fuzz` turns debug assertions on. What these
# add to each access keeps the compiler from making jumps of the threaded core's calls, and its match loop would be fuzzed alone.
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
set -euo pipefail

targets=$(sed -n 's/^name = "\([a-z_]*\)"$/\1/p' fuzz/Cargo.toml)
usage() {
  # shellcheck disable=SC2086 # one word each
  printf 'usage: scripts/fuzz.sh TARGET [--seconds=N | --cpu-seconds=N] [--build]\ntargets: %s\n' "$(echo $targets)" >&2
  exit 2
}
target=${1:-}
grep -qx "${target:-none}" <<<"$targets" || usage
shift
limit=seconds amount=60 only_build=
for argument in "$@"; do
  case $argument in
    --seconds=* | --cpu-seconds=*)
      limit=${argument%%=*} amount=${argument#*=}
      limit=${limit#--}
      [[ $amount =~ ^[1-9][0-9]*$ ]] || usage
      ;;
    --build) only_build=yes ;;
    *) usage ;;
  esac
done

host=$(rustc -vV | sed -n 's/^host: //p')
case $host in
  x86_64-unknown-linux-gnu | aarch64-unknown-linux-gnu | x86_64-apple-darwin | aarch64-apple-darwin) ;;
  *)
    missing "AddressSanitizer for $host" "use Linux or macOS on x86-64 or aarch64"
    exit 3
    ;;
esac
if ! command -v "${CXX:-c++}" >/dev/null; then
  missing "a C++ compiler" "apt-get install g++"
  exit 3
fi

export RUSTC_BOOTSTRAP=1 CARGO_INCREMENTAL=0
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target}/libfuzzer
flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
-Cllvm-args=-sanitizer-coverage-pc-table -Cllvm-args=-sanitizer-coverage-trace-compares --cfg fuzzing \
-Cllvm-args=-simplifycfg-branch-fold-threshold=0 -Zsanitizer=address -Coverflow-checks=on -Ccodegen-units=1"
RUSTFLAGS="${RUSTFLAGS:+$RUSTFLAGS }$flags" \
  cargo build --manifest-path fuzz/Cargo.toml --release --target "$host" --bin "$target"
binary=$CARGO_TARGET_DIR/$host/release/$target
[ -z "$only_build" ] || exit 0

# What is found goes to the first folder; the others are read.
corpus=fuzz/corpus/$target
mkdir -p "$corpus" fuzz/artifacts
folders=("$corpus" "fuzz/seeds/$target")
[ -d "fuzz/regressions/$target" ] && folders+=("fuzz/regressions/$target")
# Modules of every bytecode version without machine code, which would be refused.
[ "$target" = module ] && folders+=(tests/corpus/modules/{20230209.425,20230524.529,3.9.0,3.13.0}/inline-vmvx)
# Leaks are not looked for: the process under test ends with its caches full. Allocations that cannot be had are ordinary errors.
export ASAN_OPTIONS="detect_leaks=0:allocator_may_return_null=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
options=(-timeout=120 -rss_limit_mb=2048 -malloc_limit_mb=4096 -detect_leaks=0 -print_final_stats=1 "-artifact_prefix=fuzz/artifacts/$target-")

log=$(mktemp) spent=$(mktemp)
trap 'rm -f "$log" "$spent"' EXIT
# measure: sets `cpu` to the processor time of all children up to now, in whole seconds. Not in a subshell, which has no children yet.
measure() {
  times >"$spent"
  cpu=$(awk 'NR == 2 { for (i = 1; i <= 2; i++) { split($i, t, /[ms]/); n += 60 * t[1] + t[2] } printf "%d", n }' "$spent")
}
# number PATTERN: the number that follows in the last line of the log that has it.
number() { sed -n "s/.*$1 *\([0-9][0-9]*\).*/\1/p" "$log" | tail -1; }

measure
built=$cpu executions=0 used=0 started=$SECONDS
while :; do
  slice=$amount
  if [ "$limit" = cpu-seconds ]; then
    slice=$((amount - used))
    [ "$slice" -gt 300 ] && slice=300
  fi
  "$binary" "${options[@]}" -max_total_time="$slice" "${folders[@]}" 2>&1 | tee "$log"
  measure
  used=$((cpu - built))
  executions=$((executions + $(number 'stat::number_of_executed_units:')))
  [ "$limit" = cpu-seconds ] && [ "$used" -lt "$amount" ] || break
done
printf '\n%s: %d executions in %d s of processor time (%d s by the clock), %d a second; coverage %d edges, %d features; corpus %d inputs; no finding\n' \
  "$target" "$executions" "$used" "$((SECONDS - started))" "$((executions / (used > 0 ? used : 1)))" \
  "$(number 'DONE *cov:')" "$(number 'DONE .* ft:')" "$(find "$corpus" -type f | wc -l)"
