#!/usr/bin/env python3
"""Compiles the programs of this folder with the official compiler, 3.13.0: `build.py IREE_COMPILE`.

`large` has a constant of 80 KB, whose pages are mapped, and no source in the folder: it is made here.
"""
import pathlib
import struct
import subprocess
import sys

FOLDER = pathlib.Path(__file__).parent
LOCAL = ["--iree-hal-target-device=local"]
NATIVE = [*LOCAL, "--iree-hal-local-target-device-backends=llvm-cpu", "--iree-llvmcpu-target-cpu=generic"]
FORMS = {
    "": NATIVE,
    ".vmvx": [*LOCAL, "--iree-hal-local-target-device-backends=vmvx"],
    ".system": [*NATIVE, "--iree-llvmcpu-link-embedded=false"],
    ".inline": [*NATIVE, "--iree-execution-model=inline-dynamic"],
    ".static": [*LOCAL, "--iree-hal-local-target-device-backends=vmvx-inline", "--iree-execution-model=inline-static"],
}
PROGRAMS = {
    "const_write": ["", ".vmvx"],
    "const_sort": ["", ".vmvx"],
    "const_double": ["", ".vmvx", ".system"],
    "globals": ["", ".vmvx"],
    "inputs": ["", ".vmvx", ".inline", ".static"],
    "large": ["", ".vmvx"],
}


def large() -> str:
    """The elements are 0, 1, 2, …"""
    values = struct.pack("<20000i", *range(20000)).hex().upper()
    return f"""
func.func @bump(%at: tensor<1x1xi32>) -> tensor<20000xi32> {{
  %v = util.unfoldable_constant dense<"0x{values}"> : tensor<20000xi32>
  %u = util.unfoldable_constant dense<[1000]> : tensor<1xi32>
  %r = iree_linalg_ext.scatter dimension_map = [0] unique_indices(true)
      ins(%u, %at : tensor<1xi32>, tensor<1x1xi32>) outs(%v : tensor<20000xi32>) {{
  ^bb0(%new: i32, %old: i32):
    %s = arith.addi %new, %old : i32
    iree_linalg_ext.yield %s : i32
  }} -> tensor<20000xi32>
  return %r : tensor<20000xi32>
}}
"""


def main() -> None:
    for program, forms in PROGRAMS.items():
        source = FOLDER / f"{program}.mlir"
        text = source.read_text() if source.exists() else large()
        for form in forms:
            target = FOLDER / f"{program}{form}.vmfb"
            subprocess.run([sys.argv[1], *FORMS[form], "-", "-o", target], input=text, text=True, check=True, timeout=300)


main()
