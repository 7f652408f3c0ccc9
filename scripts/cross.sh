#!/usr/bin/env bash
# Builds the tests for other architectures and runs them under emulation: the corpus modules that hold machine code of that
# architecture are executed for real, and so are modules without machine code.
# Usage: scripts/cross.sh [ARCHITECTURE...]      default: aarch64 riscv64
#
# A target needs its standard library (from rustup, or Debian's rustc-web), a linker and qemu. What is missing is said,
# and the next target is tried.
. "$(dirname "${BASH_SOURCE[0]}")/support.sh"
architectures=("$@")
[ ${#architectures[@]} -eq 0 ] && architectures=(aarch64 riscv64)
debian_rustc=/usr/bin/rustc # rustc-web puts it there, with or without standard libraries for other targets
target_directory=${CARGO_TARGET_DIR:-target}

# has_library COMPILER TARGET: whether the compiler has the target's standard library.
has_library() {
  local place
  place=$("$1" --print target-libdir --target "$2" 2>/dev/null) && compgen -G "$place/libstd-*.rlib" >/dev/null
}

# prepare ARCHITECTURE TARGET: sets the environment and build arguments in `build`, or fails after saying what is missing.
prepare() {
  local architecture=$1 target=$2 linker=$1-linux-gnu-gcc emulator=
  build=()
  for name in "qemu-$architecture-static" "qemu-$architecture"; do
    command -v "$name" >/dev/null && emulator=$name && break
  done
  [ -n "$emulator" ] || { missing "an emulator for $architecture" "apt-get install qemu-user-static"; return 1; }
  command -v "$linker" >/dev/null || { missing "$linker" "apt-get install gcc-$architecture-linux-gnu"; return 1; }

  if ! has_library rustc "$target" && command -v rustup >/dev/null; then
    rustup target add "$target" >/dev/null 2>&1
  fi
  if has_library rustc "$target"; then
    build+=(--target-dir "$target_directory/cross")
  elif [ -x $debian_rustc ] && has_library $debian_rustc "$target"; then
    export RUSTC=$debian_rustc
    build+=(--target-dir "$target_directory/cross-debian")
  elif [ -x $debian_rustc ] && [ -d "$($debian_rustc --print sysroot)/lib/rustlib/src/rust/library" ]; then
    export RUSTC=$debian_rustc RUSTC_BOOTSTRAP=1
    build+=(--target-dir "$target_directory/cross-debian" -Zbuild-std)
  else
    missing "Rust's standard library for $target" "rustup target add $target, or on Debian: apt-get install rustc-web rust-web-src"
    return 1
  fi

  local upper=${target//-/_}
  upper=${upper^^}
  # Where the architecture's libraries are installed themselves, those of the cross compiler are not needed (and beside them, threads
  # of emulated programs were seen to hang).
  compgen -G "/lib/ld-linux-$architecture*" >/dev/null || emulator+=" -L /usr/$architecture-linux-gnu"
  export "CARGO_TARGET_${upper}_LINKER=$linker" "CARGO_TARGET_${upper}_RUNNER=$emulator"
}

# run ARCHITECTURE TARGET: in a subshell, so that one target's environment does not reach the next.
run() (
  failures=0 skips=0
  if prepare "$1" "$2"; then
    say "$2: unit tests"
    try_tests cargo test "${build[@]}" --target "$2" --release --lib \
      -p vmfb-memory -p vmfb-bytecode -p vmfb-vm -p vmfb-hal -p vmfb-loader-elf -p vmfb-module-hal-loader
    for filter in "inline-elf-$1" static-vmvx inline-vmvx-uk; do
      say "$2: corpus modules of the mode $filter"
      try_tests cargo test "${build[@]}" --target "$2" --release -p vmfb --test corpus -- "$filter"
    done
  fi
  [ $skips -gt 0 ] && exit 77
  [ $failures -eq 0 ]
)

for architecture in "${architectures[@]}"; do
  case $architecture in
    aarch64) target=aarch64-unknown-linux-gnu ;;
    riscv64) target=riscv64gc-unknown-linux-gnu ;;
    *)
      echo "unknown architecture $architecture: aarch64 and riscv64 are known" >&2
      exit 2
      ;;
  esac
  say "$target"
  run "$architecture" "$target"
  case $? in
    0) ;;
    77) skips=$((skips + 1)) ;;
    *) failures=$((failures + 1)) ;;
  esac
done
finish
