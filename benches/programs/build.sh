#!/usr/bin/env bash
# Builds every benchmark module. Usage: build.sh IREE_COMPILE [IREE_AS_MODULE] [OUTDIR]
# Written for 3.x compilers whose target device is named "local"; modules land in OUTDIR.
set -u
compile=${1:?path of iree-compile}
asm=${2:-}
out=${3:-build}
here=$(cd "$(dirname "$0")" && pwd)
limit=${BENCH_COMPILE_LIMIT:-240}
mkdir -p "$out"
python3 "$here/gen.py" "$out/gen" || exit 1
failed=0
run() { timeout "$limit" "$@" 2>"$out/err.txt" || { failed=$((failed + 1)); echo "FAILED: $*" >&2; head -3 "$out/err.txt" >&2; }; }
vm() { run "$compile" --compile-mode=vm "$1" -o "$out/$2.vmfb"; }
vm "$here/vm/kernels.mlir" kernels
for g in many_functions_500 many_functions_5000 rodata_1m rodata_64m rodata_256m; do vm "$out/gen/$g.mlir" $g; done
[ -n "$asm" ] && run "$asm" --output="$out/recursion.vmfb" "$here/vm/recursion.vmasm"
for f in "$here"/tensor/*.mlir "$out"/gen/chain_100.mlir "$out"/gen/mlp.mlir "$out"/gen/mobile.mlir; do
  n=$(basename "$f" .mlir)
  for mode in inline-dynamic async-external; do
    run "$compile" --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu \
      --iree-llvmcpu-target-cpu=${BENCH_CPU:-generic} --iree-execution-model=$mode "$f" -o "$out/$n.cpu.$mode.vmfb"
  done
  run "$compile" --iree-hal-target-device=local --iree-hal-local-target-device-backends=vmvx \
    --iree-vmvx-enable-microkernels=false --iree-execution-model=inline-dynamic "$f" -o "$out/$n.vmvx.inline-dynamic.vmfb"
  run "$compile" --iree-hal-target-device=local --iree-hal-local-target-device-backends=vmvx \
    --iree-vmvx-enable-microkernels=true --iree-execution-model=inline-dynamic "$f" -o "$out/$n.vmvxuk.inline-dynamic.vmfb"
done
# Only with data tiling do matrix products reach the microkernel mmt4d.
run "$compile" --iree-hal-target-device=local --iree-hal-local-target-device-backends=vmvx --iree-opt-data-tiling=true \
  --iree-vmvx-enable-microkernels=true --iree-execution-model=inline-dynamic "$here/tensor/matmul.mlir" -o "$out/matmul.vmvxdt.inline-dynamic.vmfb"
rm -f "$out/err.txt"
echo "build failures: $failed"
exit $((failed > 0))
