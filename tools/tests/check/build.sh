#!/usr/bin/env bash
# Compiles the test functions with the official compiler: pip install iree-base-compiler==3.13.0
set -euo pipefail
cd "$(dirname "$0")"
compile=${IREE_COMPILE:-iree-compile}
"$compile" --iree-vm-bytecode-module-strip-source-map=true --iree-hal-target-device=local --iree-hal-local-target-device-backends=vmvx \
  checks.mlir -o checks.vmfb
