#!/usr/bin/env python3
"""Runs the benchmark programs on our tools and on the official ones, and prints how they compare.

    cargo build --release -p vmfb-tools
    pip install iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
    python3 benches/compare.py [--only REGEX] [--rounds N] [--seconds S] [--out FILE.json]

The figure of a row is CPU time, measured inside the process that runs the program, for one unit of work. The two
runtimes take turns, round by round; the ratio is the median over the rounds of (official / ours), so that 2.0 means
twice as fast as the official runtime. Before it is timed, each program's result is checked on both.
Rows under "Whole processes" are CPU time and peak resident memory of a process that loads the module and makes one call.

Without the official tools only our figures are printed. Modules are compiled when they are missing.
"""
import argparse
import ctypes
import importlib.util
import json
import os
import pathlib
import platform
import re
import shutil
import statistics
import subprocess
import sys

import cases

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
FLAG_BELOW = 0.7
TIMEOUT_S = 300


class Failure(Exception):
    """A tool that did not do what was asked; the text says which and how."""


def official(name):
    """The tool itself where the package is installed (its launcher costs 20 ms of Python), else what PATH has, else None."""
    for package in ("iree._runtime_libs", "iree._runtime"):
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            break
        for folder in (spec.submodule_search_locations or []) if spec else []:
            if (pathlib.Path(folder) / name).is_file():
                return str(pathlib.Path(folder) / name)
    return shutil.which(name)


def build_modules(folder):
    """Compiles what is missing in `folder`."""
    wanted = {c.module for c in cases.cases()} | {s.module for s in cases.starts()}
    if all((folder / m).is_file() for m in wanted):
        return
    compiler = shutil.which("iree-compile")
    if not compiler:
        raise Failure(f"{folder} lacks modules and iree-compile is not installed: pip install iree-base-compiler==3.13.0")
    print(f"compiling the modules into {folder}", file=sys.stderr)
    subprocess.run([str(HERE / "programs/build.sh"), compiler, official("iree-as-module") or "", str(folder)], check=False)


def output_of(command):
    """Standard output of a command that must succeed."""
    try:
        r = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, errors="replace")
    except FileNotFoundError:
        raise Failure(f"{command[0]} is missing") from None
    except subprocess.TimeoutExpired:
        raise Failure(f"no answer within {TIMEOUT_S} s") from None
    if r.returncode:
        lines = [s for s in r.stderr.splitlines() if s.strip()]
        raise Failure(f"{pathlib.Path(command[0]).name} ended with {r.returncode}: {lines[0][:200] if lines else 'no message'}")
    return r.stdout


def arguments(case, folder, module_flag):
    path = str(folder / case.module)
    return [f"--module={path}" if module_flag else path, f"--function={case.function}"] + [f"--input={v}" for v in case.inputs]


def check_result(command, expected):
    """Runs the program once; every element of its first result must be what is expected."""
    text = output_of(command)
    match = re.search(r"result\[0\]:[^=]*=(.*)", text)
    if not match:
        raise Failure("printed no result")
    values = [float(v) for v in re.sub(r"[\[\],]|\.\.\.", " ", match.group(1)).split()]
    wrong = [v for v in values if abs(v - expected) > 1e-4 * abs(expected)]
    if wrong or not values:
        raise Failure(f"result is {wrong[0] if wrong else 'empty'}, expected {expected}")


class Peer:
    name = "official"

    def __init__(self):
        self.bench, self.run = official("iree-benchmark-module"), official("iree-run-module")
        self.there = bool(self.bench and self.run)

    def flags(self, case):
        return ["--device=local-sync"] if getattr(case, "mode", "") == "async" else []

    def once(self, case, folder):
        return [self.run] + arguments(case, folder, True) + self.flags(case) + list(getattr(case, "peer_flags", ()))

    def nanoseconds(self, case, folder, seconds):
        command = [self.bench] + arguments(case, folder, True) + self.flags(case)
        text = output_of(command + ["--benchmark_format=json", f"--benchmark_min_time={seconds}s"])
        b = json.loads(text)["benchmarks"][0]
        return b["cpu_time"] * {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}[b["time_unit"]]


class Ours:
    name = "ours"
    there = True

    def __init__(self, folder):
        self.bench, self.run = str(folder / "vm-bench"), str(folder / "vm-run")
        self.known = {}  # case -> nanoseconds of a call, to choose the number of calls

    def once(self, case, folder):
        return [self.run] + arguments(case, folder, False)

    def calls(self, case, folder, count):
        text = output_of([self.bench] + arguments(case, folder, False) + [f"--iterations={count}", "--json"])
        return json.loads(text)["cpu_ns_per_call"]

    def nanoseconds(self, case, folder, seconds):
        if case not in self.known:
            self.known[case] = self.calls(case, folder, 1)
            if self.known[case] < 1e6:  # the first call pays for translation
                self.known[case] = self.calls(case, folder, 100)
        return self.calls(case, folder, max(1, round(seconds * 1e9 / max(self.known[case], 1))))


def become_subreaper():
    """Makes this process the parent of grandchildren whose parent has ended (Linux); says whether that worked."""
    try:
        return ctypes.CDLL(None).prctl(36, 1, 0, 0, 0) == 0
    except (AttributeError, OSError):
        return False


def process(command):
    """(CPU milliseconds, peak MiB) of one process.

    A process starts with the peak of the one that forked it. So that this is not Python's, a shell starts it and
    ends, and the process is adopted and waited for here. Where that is not possible there is no figure for memory.
    """
    adopted = become_subreaper()
    if adopted:
        # `exec` at once, lest the shell waits for a child that ends early.
        subprocess.run(["/bin/sh", "-c", '"$@" >/dev/null 2>&1 & exec true', "sh", *command], check=True)
        pid = -1
    else:
        pid = os.posix_spawn(command[0], command, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_WRONLY, 0) for fd in (1, 2)])
    _, status, usage = os.wait4(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    if code:
        raise Failure(f"{pathlib.Path(command[0]).name} ended with {code}")
    return (usage.ru_utime + usage.ru_stime) * 1e3, usage.ru_maxrss / 1024 if adopted else None


def take_turns(runtimes, rounds, measure):
    """{runtime name: list of figures} with one figure of each runtime per round, the order changing each round."""
    figures, errors = {r.name: [] for r in runtimes}, {}
    for i in range(rounds):
        for r in runtimes if i % 2 == 0 else runtimes[::-1]:
            if r.name not in errors:
                try:
                    figures[r.name].append(measure(r))
                except Failure as e:
                    errors[r.name] = str(e)
    return figures, errors


def median_ratio(peer, ours):
    ratios = [p / o for p, o in zip(peer, ours) if o > 0]
    return statistics.median(ratios) if ratios else None


def number(x):
    return "-" if x is None else f"{x:.3g}" if x < 1000 else f"{x:.0f}"


def checked(case, folder, runtimes):
    """The runtimes that give the right result, and what is wrong with the others."""
    ready, errors = [], {}
    for r in runtimes:
        try:
            check_result(r.once(case, folder), case.expected)
            ready.append(r)
        except Failure as e:
            errors[r.name] = str(e)
    return ready, errors


def bench(case, folder, runtimes, options):
    """The row of one case."""
    row = {"name": case.name, "mode": case.mode, "unit": case.unit}
    ready, errors = checked(case, folder, runtimes)
    figures, more = take_turns(ready, options.rounds, lambda r: r.nanoseconds(case, folder, options.seconds) / case.units)
    row["errors"] = {**errors, **more}
    for name, values in figures.items():
        if values and name not in row["errors"]:
            row[name] = statistics.median(values)
    if "official" in row and "ours" in row:
        row["ratio"] = median_ratio(figures["official"], figures["ours"])
    return row


def bench_start(start, folder, runtimes, options):
    ready, errors = checked(start, folder, runtimes)
    figures, more = take_turns(ready, options.rounds, lambda r: process(r.once(start, folder)))
    row = {"name": start.name, "errors": {**errors, **more}}
    for name, values in figures.items():
        if values and name not in row["errors"]:
            row[name] = statistics.median(v[0] for v in values)
            if values[0][1] is not None:
                row[name + "_mib"] = statistics.median(v[1] for v in values)
    if "official" in row and "ours" in row:
        row["ratio"] = median_ratio([v[0] for v in figures["official"]], [v[0] for v in figures["ours"]])
    return row


def notes(row):
    out = [f"under {FLAG_BELOW}"] if row.get("ratio") is not None and row["ratio"] < FLAG_BELOW else []
    return "; ".join(out + [f"{who}: {what}" for who, what in row["errors"].items()])


def print_row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def machine():
    """The CPU's name."""
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text()
        model = re.search(r"^model name\s*: (.*)", text, re.M)
        return f"{model.group(1) if model else platform.processor() or platform.machine()}, {os.cpu_count()} processors"
    except OSError:
        return platform.processor() or platform.machine()


def parse_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default="", help="regular expression; rows are named MODE/NAME, processes process/NAME")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--seconds", type=float, default=0.2, help="CPU time per program, runtime and round")
    p.add_argument("--modules", type=pathlib.Path, default=TARGET / "bench-modules", help="folder of the compiled modules")
    p.add_argument("--tools", type=pathlib.Path, default=TARGET / "release", help="folder of vm-run and vm-bench")
    p.add_argument("--peer-only", action="store_true", help="leave our tools out")
    p.add_argument("--out", type=pathlib.Path, help="writes the rows as JSON, too")
    p.add_argument("--fail-under", type=float, default=0, metavar="RATIO", help="exit code 1 if a ratio is lower")
    return p.parse_args()


def main():
    options = parse_options()
    try:
        build_modules(options.modules)
    except Failure as e:
        sys.exit(str(e))
    peer = Peer()
    if not peer.there:
        print("The official tools are not installed (pip install iree-base-runtime==3.13.0): no ratios.", file=sys.stderr)
    runtimes = ([peer] if peer.there else []) + ([] if options.peer_only else [Ours(options.tools)])
    print(f"CPU: {machine()}. Load at the start: {os.getloadavg()[0]:.1f}. {options.rounds} rounds of {options.seconds} s.\n")

    chosen = [c for c in cases.cases() if re.search(options.only, f"{c.mode}/{c.name}")]
    rows = []
    if chosen:
        print_row("mode", "program", "unit", "official, ns", "ours, ns", "ratio", "notes")
        print_row(*["---"] * 7)
    for case in chosen:
        row = bench(case, options.modules, runtimes, options)
        rows.append(row)
        print_row(row["mode"], row["name"], row["unit"], number(row.get("official")), number(row.get("ours")), number(row.get("ratio")), notes(row))

    chosen = [s for s in cases.starts() if re.search(options.only, f"process/{s.name}")]
    if chosen:
        print("\nWhole processes\n")
        print_row("program", "official, ms", "ours, ms", "ratio", "official, MiB", "ours, MiB", "notes")
        print_row(*["---"] * 7)
    for start in chosen:
        row = bench_start(start, options.modules, runtimes, options)
        rows.append(row)
        print_row(row["name"], number(row.get("official")), number(row.get("ours")), number(row.get("ratio")),
                  number(row.get("official_mib")), number(row.get("ours_mib")), notes(row))

    if options.out:
        options.out.write_text(json.dumps({"cpu": machine(), "rows": rows}, indent=1) + "\n")
    failed = [r for r in rows if r["errors"]]
    slow = [r for r in rows if r.get("ratio") is not None and r["ratio"] < options.fail_under]
    sys.exit(1 if failed or slow else 0)


if __name__ == "__main__":
    main()
