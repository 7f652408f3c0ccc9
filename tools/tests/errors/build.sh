#!/bin/sh
# Compiles the modules that the tests of error messages use, with the compiler 3.13.0.
set -e
cd "$(dirname "$0")"
default="--iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu --iree-llvmcpu-debug-symbols=false"
lost="--iree-flow-inline-constants-max-byte-length=268435456"
iree-compile $default --iree-llvmcpu-target-triple=aarch64-linux-gnu --iree-llvmcpu-target-cpu=generic foreign.mlir -o foreign.vmfb
iree-compile --iree-hal-target-device=vulkan foreign.mlir -o vulkan.vmfb
iree-compile $default --iree-llvmcpu-target-cpu=generic --iree-llvmcpu-target-cpu-features=+fma4,+avx features.mlir -o features.vmfb
iree-compile $default --iree-llvmcpu-target-cpu=generic --iree-llvmcpu-stack-allocation-limit=2mib stack.mlir -o stack.vmfb
iree-compile $default --iree-llvmcpu-target-cpu=generic parameters.mlir -o parameters.vmfb
iree-compile --iree-hal-target-backends=vmvx --iree-execution-model=inline-dynamic $lost lost_constant.mlir -o lost_dynamic.vmfb
iree-compile --iree-hal-target-backends=vmvx-inline --iree-execution-model=inline-static $lost lost_constant.mlir -o lost_static.vmfb
# What the error advises helps.
lost="$lost --iree-opt-const-expr-hoisting=false"
iree-compile --iree-hal-target-backends=vmvx --iree-execution-model=inline-dynamic $lost lost_constant.mlir -o kept_dynamic.vmfb
iree-compile --iree-hal-target-backends=vmvx-inline --iree-execution-model=inline-static $lost lost_constant.mlir -o kept_static.vmfb
