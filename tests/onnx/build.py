#!/usr/bin/env python3
"""Compiles the ONNX node tests whose names begin with given letters, and keeps those that the official runtime passes.

    pip install onnx==1.19.1 iree-base-compiler[onnx]==3.13.0 iree-base-runtime==3.13.0 numpy
    python3 tests/onnx/build.py [--letters=abcde] [--out=target/onnx] [--keep=tests/onnx/modules --largest=16384]

The `onnx` package ships models with inputs and results. Each model is imported, compiled in the compiler's default execution
model, and run by the official tool with `--expected_output`. For each that passes, OUT/NAME holds `module.vmfb`, `input_I.npy`,
`output_I.npy`. With --keep, modules up to --largest bytes are copied there as NAME.vmfb with NAME.json (inputs and results as text).
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import numpy_helper

NAMES = {"float16": "f16", "float32": "f32", "float64": "f64", "int8": "si8", "int16": "si16", "int32": "si32", "int64": "si64",
         "uint8": "ui8", "uint16": "ui16", "uint32": "ui32", "uint64": "ui64", "bool": "i1"}


def arrays(folder, kind):
    """The tensors of the first data set, in order; None if one is no plain tensor."""
    found = []
    for i in range(64):
        path = folder / "test_data_set_0" / ("%s_%d.pb" % (kind, i))
        if not path.exists():
            return found
        tensor = onnx.TensorProto()
        try:
            tensor.ParseFromString(path.read_bytes())
            array = numpy_helper.to_array(tensor)
        except Exception:
            return None
        if array.dtype.name not in NAMES:
            return None
        found.append(array)
    return found


def text(array):
    """An array as the command line takes it."""
    name = NAMES[array.dtype.name]
    values = " ".join(repr(v) if isinstance(v, float) else str(int(v)) for v in array.reshape(-1).tolist())
    return "x".join([str(d) for d in array.shape] + [name]) + "=" + values


def run(command, limit=120):
    try:
        return subprocess.run(command, capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return None


def passed(process):
    return process is not None and process.returncode == 0


def build(folder, out, tool):
    """'passes', or why not."""
    inputs, outputs = arrays(folder, "input"), arrays(folder, "output")
    if inputs is None or not outputs:
        return "not plain tensors"
    out.mkdir(parents=True, exist_ok=True)
    mlir, module = out / "model.mlir", out / "module.vmfb"
    model = out / "model.onnx"
    try:
        loaded = onnx.version_converter.convert_version(onnx.load(folder / "model.onnx"), 17)
    except Exception:
        loaded = onnx.load(folder / "model.onnx")
    onnx.save(loaded, model)
    if not passed(run(["iree-import-onnx", str(model), "-o", str(mlir)])):
        return "not imported"
    # Without the first flag doubles become floats, and the results are no longer those of the package.
    flags = ["--iree-input-demote-f64-to-f32=false", "--iree-hal-target-device=local",
             "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=generic",
             "--iree-llvmcpu-debug-symbols=false", "--iree-vm-bytecode-module-strip-source-map=true"]
    if not passed(run(["iree-compile", *flags, str(mlir), "-o", str(module)])):
        return "not compiled"
    for i, array in enumerate(inputs):
        np.save(out / ("input_%d.npy" % i), np.ascontiguousarray(array).reshape(array.shape))
    for i, array in enumerate(outputs):
        np.save(out / ("output_%d.npy" % i), np.ascontiguousarray(array).reshape(array.shape))
    command = [tool, "--module=%s" % module, "--device=local-sync"]
    command += ["--input=@%s" % (out / ("input_%d.npy" % i)) for i in range(len(inputs))]
    # The official tool holds signless results against signed expectations: compare its files ourselves.
    command += ["--output=@%s" % (out / ("official_%d.npy" % i)) for i in range(len(outputs))]
    process = run(command)
    if not passed(process):
        return "not run: %s" % (process.stderr.decode(errors="replace").splitlines() or ["no answer"])[0][:100] if process else "not run"
    for i, array in enumerate(outputs):
        got = np.load(out / ("official_%d.npy" % i))
        if got.dtype.kind in "iu" and array.dtype.kind in "iu" and got.dtype.itemsize == array.dtype.itemsize:
            got = got.view(array.dtype)  # results are signless
        if got.shape != array.shape or not np.allclose(got.astype(np.float64), array.astype(np.float64), rtol=1e-3, atol=1e-4, equal_nan=True):
            return "other results"
    return "passes"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--letters", default="abcde")
    parser.add_argument("--out", default="target/onnx")
    parser.add_argument("--keep")
    parser.add_argument("--largest", type=int, default=16384)
    parser.add_argument("--tool", default="iree-run-module")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    data = pathlib.Path(onnx.__file__).parent / "backend/test/data/node"
    folders = sorted(p for p in data.iterdir() if p.name.startswith(tuple("test_" + c for c in options.letters)))
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    results_path = out / "results.json"
    results = json.loads(results_path.read_text()) if results_path.exists() else {}
    for number, folder in enumerate(folders):
        if folder.name not in results:
            results[folder.name] = build(folder, out / folder.name, options.tool)
            results_path.write_text(json.dumps(results, indent=0))
        print("%d/%d %s: %s" % (number + 1, len(folders), folder.name, results[folder.name]), file=sys.stderr)
    kinds = {}
    for result in results.values():
        kinds[result.split(":")[0]] = kinds.get(result.split(":")[0], 0) + 1
    print(json.dumps(kinds))
    if options.keep:
        keep = pathlib.Path(options.keep)
        keep.mkdir(parents=True, exist_ok=True)
        for name in sorted(n for n, r in results.items() if r == "passes"):
            module = out / name / "module.vmfb"
            folder = data / name
            if os.path.getsize(module) <= options.largest:
                expectation = {"inputs": [text(a) for a in arrays(folder, "input")], "outputs": [text(a) for a in arrays(folder, "output")]}
                line = json.dumps(expectation)
                if len(line) <= options.largest:
                    shutil.copy(module, keep / (name + ".vmfb"))
                    (keep / (name + ".json")).write_text(line + "\n")


if __name__ == "__main__":
    main()
