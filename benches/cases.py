"""The benchmark cases: which module, function and inputs, how many units of work one call does, and the result it must give."""
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    name: str        # of the row
    mode: str        # of compilation
    module: str      # file name
    function: str
    inputs: tuple    # as on the command line
    units: float     # the time of one call is divided by this
    unit: str
    expected: float  # what every element of the first result is


@dataclass(frozen=True)
class Start:
    """A whole process that loads a module and makes one call."""
    name: str
    module: str
    function: str
    inputs: tuple
    expected: float
    peer_flags: tuple = ()


# name, trip count, result; one unit is one iteration
KERNELS = [
    ("loop_i32", 1000000, 1783293664), ("loop_i64", 1000000, 943804315), ("arith_f32", 1000000, 2.61339e11),
    ("arith_f64", 1000000, 2.61339e11), ("calls", 300000, -1013489472), ("globals", 1000000, -834734784), ("buf_sum", 1000000, 3000000),
    ("buf_axpy", 1000000, 154.375), ("memset_bytes", 1000000, 7), ("buf_bulk", 300, 300), ("sieve", 1000000, 78498),
    ("list_i32", 1000000, 488219601), ("list_ref", 1000000, 64), ("collatz", 10000, 849637), ("br_table", 1000000, 179812921),
    ("import_calls", 300000, 19200000), ("import_variadic", 100000, 200000), ("nop", 1, 1),
]
FIB_CALLS = 150049  # of fib(24)
LOOP = 1000         # trip count of the dispatch programs

# file, function, inputs, units, unit, result
TENSORS = [
    ("chain_100", "chain", ("8x8xf32=0.125",) * 2, 100, "dispatch", 0.125),
    ("dispatch", "d_static", ("4xf32=1", str(LOOP)), LOOP, "dispatch", 1 + LOOP),
    ("dispatch", "d_const", ("4xf32=1", str(LOOP)), LOOP, "dispatch", 1 + LOOP * (LOOP - 1) / 2),
    ("dispatch", "d_eight", ("4xf32=1",) * 7 + (str(LOOP),), LOOP, "dispatch", 1 + 3 * LOOP),
    ("dispatch", "d_dynamic", ("4xf32=1", str(LOOP)), LOOP, "dispatch", 1 + LOOP),
    ("matmul", "mm128", ("128x128xf32=0.5",) * 2, 128 ** 3, "mac", 32),
    ("matmul", "mm256", ("256x256xf32=0.5",) * 2, 256 ** 3, "mac", 64),
    ("matmul", "mm1024", ("1024x1024xf32=0.5",) * 2, 1024 ** 3, "mac", 256),
    ("conv", "conv", ("1x58x58x64xf32=0.5", "3x3x64x64xf32=0.5"), 56 * 56 * 64 * 9 * 64, "mac", 144),
    ("elementwise", "add64k", ("65536xf32=0.5",) * 2, 65536, "element", 1),
    ("elementwise", "poly64k", ("65536xf32=0.5",), 65536, "element", 0.875),
    ("elementwise", "softmax", ("64x1024xf32=0.5",), 65536, "element", 1 / 1024),
    ("elementwise", "reduce", ("256x1024xf32=0.5",), 262144, "element", 512),
    ("mlp", "mlp", ("1x784xf32=0.5",), 1, "call", 27.7043),
    ("mobile", "mobile", ("1x96x96x3xf32=0.5",), 1, "call", 54),
]
MODES = {"elf": "cpu.inline-dynamic", "vmvx": "vmvx.inline-dynamic", "vmvx-microkernels": "vmvxuk.inline-dynamic",
         "vmvx-data-tiling": "vmvxdt.inline-dynamic", "async": "cpu.async-external"}
# The 3.13.0 compiler packs only the first 64 terms of each sum for this mode: 64 * 0.25, on the official runtime too.
DATA_TILING_RESULT = 16
SLOW = {("mm1024", "vmvx"), ("mm1024", "vmvx-microkernels")}  # a quarter of a minute for one call


def cases():
    for name, n, result in KERNELS:
        yield Case(name, "vm", "kernels.vmfb", name, (str(n),), n, "iteration", result)
    yield Case("fib", "vm", "recursion.vmfb", "fib", ("24",), FIB_CALLS, "call", 46368)
    yield Case("down", "vm", "recursion.vmfb", "down", ("5000",), 5000, "level", 5000)
    for mode, suffix in MODES.items():
        for file, function, inputs, units, unit, result in TENSORS:
            tiling = mode == "vmvx-data-tiling"
            if (function, mode) not in SLOW and (not tiling or file == "matmul"):
                yield Case(function, mode, f"{file}.{suffix}.vmfb", function, inputs, units, unit, DATA_TILING_RESULT if tiling else result)


def starts():
    for count, result in (("500", 481303), ("5000", 561577)):
        yield Start(f"many_functions_{count}", f"many_functions_{count}.vmfb", "main", ("1",), result)
    for size in ("1m", "64m", "256m"):
        yield Start(f"rodata_{size}", f"rodata_{size}.vmfb", "ends", (), 7)
        yield Start(f"rodata_{size}, peer maps too", f"rodata_{size}.vmfb", "ends", (), 7, ("--module_mode=mmap",))
    yield Start("mm128", "matmul.cpu.inline-dynamic.vmfb", "mm128", ("128x128xf32=0.5",) * 2, 32)
    yield Start("mm128, vmvx", "matmul.vmvx.inline-dynamic.vmfb", "mm128", ("128x128xf32=0.5",) * 2, 32)
