#!/usr/bin/env bash
# Compiles the digit classifier with the official compiler: pip install iree-base-compiler==3.13.0
set -euo pipefail
cd "$(dirname "$0")"
compile=${IREE_COMPILE:-iree-compile}
small=(--iree-vm-bytecode-module-strip-source-map=true)
cpu=(--iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu
  --iree-llvmcpu-target-triple=x86_64-unknown-linux-gnu --iree-llvmcpu-target-cpu=generic --iree-llvmcpu-debug-symbols=false)
vmvx=(--iree-hal-target-device=local --iree-hal-local-target-device-backends=vmvx)
# 3.12 and 3.13 lose constants that stay module globals in the inline modes; this keeps them inside the kernels.
inline=(--iree-execution-model=inline-dynamic --iree-flow-inline-constants-max-byte-length=268435456)

"$compile" "${small[@]}" "${cpu[@]}" "${inline[@]}" digits.mlir -o digits.vmfb
"$compile" "${small[@]}" "${vmvx[@]}" "${inline[@]}" digits.mlir -o digits_vmvx.vmfb
"$compile" "${small[@]}" "${cpu[@]}" digits.mlir -o digits_async.vmfb
"$compile" "${small[@]}" "${cpu[@]}" digits_parameters.mlir -o digits_parameters.vmfb
ls -l -- *.vmfb
