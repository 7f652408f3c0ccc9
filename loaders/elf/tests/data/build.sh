#!/bin/sh
# Compiles pair.mlir to embedded ELF images for the 32-bit architectures. Needs iree-compile (the images here: 3.13.0).
set -eu
cd "$(dirname "$0")"
image() {
    name=$1
    shift
    dump=$(mktemp -d)
    iree-compile pair.mlir -o /dev/null --iree-execution-model=inline-dynamic --iree-hal-target-device=local \
        --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-debug-symbols=false \
        --iree-hal-dump-executable-binaries-to="$dump" "$@"
    mv "$dump"/*.so "pair_$name.so"
    rmdir "$dump"
}
image arm_32 --iree-llvmcpu-target-triple=armv7a-none-eabi
image x86_32 --iree-llvmcpu-target-triple=i686-pc-linux-gnu
image riscv_32 --iree-llvmcpu-target-triple=riscv32-unknown-elf --iree-llvmcpu-target-cpu=generic-rv32 \
    --iree-llvmcpu-target-cpu-features=+m,+f --iree-llvmcpu-target-abi=ilp32
