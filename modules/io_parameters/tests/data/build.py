#!/usr/bin/env python3
"""Makes the parameter files of this folder with other people's tools, and notes in `expected.json` what their readers say.

Needs the PyPI packages gguf (0.19.0), safetensors (0.8.0), numpy, and iree-base-runtime (3.13.0) for iree-create-parameters,
iree-convert-parameters and iree-dump-parameters.
"""

import json
import os
import re
import subprocess

import gguf
import numpy as np
import safetensors
import safetensors.numpy
from gguf.quants import quantize

os.chdir(os.path.dirname(os.path.abspath(__file__)))


def values(count, step, start=0.0):
    return (start + step * np.arange(count)).astype(np.float32)


def write_gguf(path):
    writer = gguf.GGUFWriter(path, "example")
    writer.add_string("example.text", "weights of nothing")
    writer.add_array("example.words", ["one", "two", "three"])
    writer.add_array("example.numbers", [1, -2, 3])
    writer.add_float32("example.fraction", 0.25)
    writer.add_bool("example.flag", True)
    writer.add_custom_alignment(64)
    writer.add_tensor("plain.f32", values(6, 0.5).reshape(2, 3))
    writer.add_tensor("plain.f16", values(5, -0.25).astype(np.float16))
    writer.add_tensor("plain.f64", np.array([1e300, -2.5]))
    writer.add_tensor("plain.i8", np.arange(-3, 4, dtype=np.int8))
    writer.add_tensor("plain.i16", np.array([[-300, 300]], dtype=np.int16))
    writer.add_tensor("plain.i32", np.array([[1, -2], [3, 4]], dtype=np.int32))
    writer.add_tensor("plain.i64", np.array([1 << 40], dtype=np.int64))
    kinds = gguf.GGMLQuantizationType
    for kind, count in [(kinds.BF16, 8), (kinds.Q8_0, 64), (kinds.Q4_0, 32), (kinds.Q4_1, 32), (kinds.Q5_0, 64), (kinds.Q5_1, 32)]:
        writer.add_tensor(f"packed.{kind.name}", quantize(values(count, 0.125, -2.0).reshape(1, count), kind), raw_dtype=kind)
    # The package has no writer for these: whole blocks of counted bytes.
    for kind in [kinds.Q2_K, kinds.Q3_K, kinds.Q4_K, kinds.Q5_K, kinds.Q6_K, kinds.Q8_K, kinds.IQ4_NL, kinds.IQ4_XS, kinds.TQ1_0, kinds.TQ2_0]:
        bytes_of_block = gguf.GGML_QUANT_SIZES[kind][1]
        writer.add_tensor(f"blocks.{kind.name}", np.arange(2 * bytes_of_block, dtype=np.uint32).astype(np.uint8).reshape(1, -1), raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def read_gguf(path):
    reader = gguf.GGUFReader(path)
    return {t.name: {"offset": int(t.data_offset), "bytes": t.data.tobytes().hex()} for t in reader.tensors}


def write_safetensors(path):
    tensors = {
        "weights": values(6, 0.5).reshape(2, 3),
        "half": values(3, 1.5).astype(np.float16),
        "numbers": np.array([-1, 2, -3], dtype=np.int32),
        "bytes": np.arange(7, dtype=np.uint8),
        "nothing": np.zeros((0, 4), dtype=np.float32),
        "naïve/ключ": np.array([1 << 33], dtype=np.int64),
    }
    safetensors.numpy.save_file(tensors, path, metadata={"format": "np", "by": "build.py"})


def read_safetensors(path):
    with safetensors.safe_open(path, framework="numpy") as file:
        return {name: {"bytes": file.get_tensor(name).tobytes().hex()} for name in file.keys()}


def read_archive(path):
    """What iree-dump-parameters lists, and the bytes that it extracts."""
    listing = subprocess.run(["iree-dump-parameters", f"--parameters={path}"], capture_output=True, text=True, check=True).stdout
    found = {}
    for line in listing.splitlines():
        row = re.match(r"\s*(\d+|-)\s*\|\s*(\d+|-)\s*\|\s*(\d+)\s*\|\s*`(.*)`", line)
        if row:
            start, _, length, name = row.groups()
            if start == "-":
                # A pattern without storage, which the tool does not extract: the one that main() asks for.
                found[name] = {"bytes": np.full(4, 3, dtype=np.int32).tobytes().hex()}
                continue
            subprocess.run(["iree-dump-parameters", "--parameter_mode=preload", f"--parameters={path}", f"--extract={name}=extracted.bin"], capture_output=True, check=True)
            with open("extracted.bin", "rb") as file:
                content = file.read()
            os.remove("extracted.bin")
            assert len(content) == int(length), name
            found[name] = {"offset": int(start), "bytes": content.hex()}
    return found


def main():
    write_gguf("tensors.gguf")
    write_safetensors("tensors.safetensors")
    create = ["iree-create-parameters", "--data=zeros=3x2xf32", "--data=more=5xi8", "--splat=threes=4xi32=3", "--output=created.irpa"]
    subprocess.run(create, check=True)
    subprocess.run(["iree-convert-parameters", "--parameters=tensors.safetensors", "--output=converted.irpa"], check=True)
    expected = {
        "tensors.gguf": read_gguf("tensors.gguf"),
        "tensors.safetensors": read_safetensors("tensors.safetensors"),
        "created.irpa": read_archive("created.irpa"),
        "converted.irpa": read_archive("converted.irpa"),
    }
    for path in expected:
        os.chmod(path, 0o644)
    with open("expected.json", "w") as file:
        json.dump(expected, file, indent=1, sort_keys=True, ensure_ascii=False)
        file.write("\n")


if __name__ == "__main__":
    main()
