#!/usr/bin/env bash
# Compiles the two smallest modules with the official compiler: pip install iree-base-compiler==3.13.0
set -euo pipefail
cd "$(dirname "$0")"
compile=${IREE_COMPILE:-iree-compile}
common=(--iree-hal-target-device=local --iree-execution-model=inline-dynamic --iree-vm-bytecode-module-strip-source-map=true)
vmvx=(--iree-hal-local-target-device-backends=vmvx --iree-vm-emit-polyglot-zip=false)

"$compile" "${common[@]}" --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu \
  --iree-llvmcpu-target-cpu=generic --iree-llvmcpu-debug-symbols=false mul.mlir -o mul.vmfb
"$compile" "${common[@]}" "${vmvx[@]}" mul.mlir -o mul_vmvx.vmfb
"$compile" "${common[@]}" "${vmvx[@]}" add.mlir -o add.vmfb
ls -l -- *.vmfb
