"""Run benchmarks, print what they measured, store it: `python -m benchmarks [NAME ...]`, all of them by default.

A benchmark is a module of this package with a function `run()` that returns its results; its name is the module's, with
dashes. What a benchmark can be told is in `python -m benchmarks.<module> --help`.
"""

from __future__ import annotations

import argparse
import pkgutil
import sys
from collections.abc import Callable, Mapping
from importlib import import_module

import benchmarks
from benchmarks.report import progress, store


def available() -> dict[str, Callable[[], Mapping[str, object]]]:
    """Return the function `run` of each benchmark by the benchmark's name."""
    modules = [
        import_module(f"benchmarks.{found.name}")
        for found in pkgutil.iter_modules(benchmarks.__path__)
        if found.name != "__main__"
    ]
    return {
        module.__name__.rpartition(".")[2].replace("_", "-"): module.run for module in modules if hasattr(module, "run")
    }


def main() -> int:
    """Run the benchmarks that were asked for."""
    runs = available()
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run benchmarks and store the results.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"{', '.join(runs)} (default: all)")
    names = parser.parse_args().names
    if unknown := sorted(set(names) - set(runs)):
        parser.error(f"there is no benchmark {', '.join(unknown)}; there are {', '.join(runs)}")
    for name in names or runs:
        progress(f"{name} ...")
        print(f"stored in {store(name, runs[name]())}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
