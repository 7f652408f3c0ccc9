#!/usr/bin/env python3
"""Peak resident memory of whole processes: vm-run beside the official iree-run-module, on the tensor programs.

    cargo build --release -p vmfb-tools
    pip install iree-base-compiler==3.13.0 iree-base-runtime==3.13.0
    python3 benches/memory.py [--only REGEX] [--rounds N]

A row is one process that loads the module and makes one call, after its result was checked. The figures are medians over the
rounds; the ratio is ours / official, so that 0.5 means half of the memory. Both run as many threads as they like, and with
`--one-thread` one.
"""
import argparse
import os
import pathlib
import re
import statistics
import sys

import cases
import compare


def parse_options():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--only", default="^(async|elf)/", help="regular expression; rows are named MODE/NAME")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--one-thread", action="store_true", help="--device=local-sync there, --threads=1 here")
    p.add_argument("--modules", type=pathlib.Path, default=compare.TARGET / "bench-modules", help="folder of the compiled modules")
    p.add_argument("--tools", type=pathlib.Path, default=compare.TARGET / "release", help="folder of vm-run")
    p.add_argument("--fail-over", type=float, metavar="RATIO", help="exit code 1 if a ratio is higher")
    return p.parse_args()


def command_lines(case, options, peer, ours):
    """{runtime name: command}"""
    theirs = [peer.run] + compare.arguments(case, options.modules, True)
    mine = ours.once(case, options.modules)
    if options.one_thread:
        theirs, mine = theirs + ["--device=local-sync"], mine + ["--threads=1"]
    elif case.mode == "async":
        theirs.append("--device=local-task")
    return {"official": theirs, "ours": mine}


def measure(case, options, peer, ours):
    """{runtime name: MiB}; the two take turns."""
    commands = command_lines(case, options, peer, ours)
    for command in commands.values():
        compare.check_result(command, case.expected)
    peaks = {name: [] for name in commands}
    for _ in range(options.rounds):
        for name, command in commands.items():
            peak = compare.process(command)[1]
            if peak is None:
                raise compare.Failure("this system does not tell the peak of a process alone")
            peaks[name].append(peak)
    return {name: statistics.median(values) for name, values in peaks.items()}


def main():
    options = parse_options()
    peer, ours = compare.Peer(), compare.Ours(options.tools)
    if not peer.there:
        sys.exit("The official tools are not installed: pip install iree-base-runtime==3.13.0")
    chosen = [c for c in cases.cases() if re.search(options.only, f"{c.mode}/{c.name}")]
    if not all((options.modules / c.module).is_file() for c in chosen):
        compare.build_modules(options.modules)
    print(f"CPU: {compare.machine()}. Load at the start: {os.getloadavg()[0]:.1f}.\n")
    compare.print_row("mode", "program", "official, MiB", "ours, MiB", "ratio", "notes")
    compare.print_row(*["---"] * 6)
    failed = False
    for case in chosen:
        try:
            peaks = measure(case, options, peer, ours)
        except compare.Failure as e:
            compare.print_row(case.mode, case.name, "-", "-", "-", str(e))
            failed = True
            continue
        ratio = peaks["ours"] / peaks["official"]
        failed |= options.fail_over is not None and ratio > options.fail_over
        compare.print_row(case.mode, case.name, f"{peaks['official']:.1f}", f"{peaks['ours']:.1f}", f"{ratio:.2f}", "")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
