# Functions that the scripts beside this one share; to be sourced.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root" || exit 1
[ -f "$HOME/.cargo/env" ] && . "$HOME/.cargo/env"
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
failures=0 skips=0

say() { printf '\n==> %s\n' "$*"; }

# missing WHAT HOW: notes something that this machine lacks and how to get it.
missing() {
  skips=$((skips + 1))
  printf 'skipped: %s is missing. To install: %s\n' "$1" "$2"
}

# try COMMAND...: runs it and counts a failure.
try() {
  printf '$ %s\n' "$*"
  "$@" || { failures=$((failures + 1)); printf 'FAILED: %s\n' "$*"; }
}

# try_tests COMMAND...: as `try`, and a run in which no test ran counts as a failure too.
try_tests() {
  local log
  log=$(mktemp)
  printf '$ %s\n' "$*"
  "$@" 2>&1 | tee "$log"
  if [ "${PIPESTATUS[0]}" -ne 0 ]; then
    failures=$((failures + 1))
    printf 'FAILED: %s\n' "$*"
  elif ! grep -Eq 'test result: ok\. [1-9][0-9]* passed' "$log"; then
    failures=$((failures + 1))
    printf 'FAILED: no test ran: %s\n' "$*"
  fi
  rm -f "$log"
}

# finish: the summary, and the exit code: 0 when nothing that ran has failed.
finish() {
  printf '\n%d failed, %d skipped\n' "$failures" "$skips"
  [ "$failures" -eq 0 ]
  exit
}
