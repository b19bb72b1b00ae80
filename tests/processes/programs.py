"""scree's programs as real processes, each with a bounded life."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SCREE = (sys.executable, "-m", "scree.docs.cli")
SECONDS = 40.0

NOTHING: Mapping[str, str] = {}

# Root may read and write whatever the permissions say, unless it gives that up: CAP_DAC_OVERRIDE (1) and
# CAP_DAC_READ_SEARCH (2), through prctl(PR_CAPBSET_DROP = 24), before the program starts.
WITHOUT_PRIVILEGES = """
import ctypes, os, sys
if os.getuid() == 0:
    for capability in (1, 2):
        assert ctypes.CDLL(None).prctl(24, capability, 0, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""
UNPRIVILEGED = (sys.executable, "-c", WITHOUT_PRIVILEGES)


def scree(
    *arguments: str, cwd: Path, environment: Mapping[str, str] = NOTHING, prefix: tuple[str, ...] = ()
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end.

    Args:
        arguments: of `scree`.
        cwd: the working folder.
        environment: what is set besides the test's own.
        prefix: a program that runs scree, such as `UNPRIVILEGED`.
    """
    return subprocess.run(
        [*prefix, *SCREE, *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=SECONDS,
        check=False,
    )


def printed(*arguments: str, cwd: Path, environment: Mapping[str, str] = NOTHING) -> str:
    """Run a command that must succeed without a word on stderr; returns what it printed."""
    done = scree(*arguments, cwd=cwd, environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def complaint(
    *arguments: str, cwd: Path, environment: Mapping[str, str] = NOTHING, prefix: tuple[str, ...] = ()
) -> str:
    """Run a command that must fail with one sentence; returns the sentence."""
    done = scree(*arguments, cwd=cwd, environment=environment, prefix=prefix)
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    assert done.stderr.startswith("scree: ")
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr.removeprefix("scree: ").removesuffix("\n")


class Program:
    """A program in the background, with pipes to its stdin and from its stdout, and its stderr in a file."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self.process.pid

    def log(self) -> list[str]:
        """Return the lines it has written to stderr."""
        return self._log.read_text(encoding="utf-8", errors="surrogateescape").splitlines()

    def kill(self) -> None:
        """Kill it at once (SIGKILL), and wait until it is gone."""
        self.process.kill()
        self.process.wait(SECONDS)

    def send(self, *lines: bytes) -> None:
        """Write lines to its stdin."""
        assert self.process.stdin is not None
        for line in lines:
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def line(self) -> bytes:
        """Return the next line of its stdout; the test's own timeout bounds the wait."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def close_stdin(self) -> None:
        """Close its stdin."""
        assert self.process.stdin is not None
        self.process.stdin.close()


@contextmanager
def running(
    *arguments: str,
    cwd: Path,
    log: Path,
    environment: Mapping[str, str] = NOTHING,
    prefix: tuple[str, ...] = (),
    command: tuple[str, ...] = SCREE,
) -> Iterator[Program]:
    """Run `scree` in the background; it is killed at the end, if it still runs.

    Args:
        arguments: of `scree`.
        cwd: the working folder.
        log: where its stderr goes.
        environment: what is set besides the test's own.
        prefix: a program that runs scree.
        command: what is run, `scree` or its like.
    """
    with (
        log.open("wb") as stderr,
        subprocess.Popen(
            [*prefix, *command, *arguments],
            cwd=cwd,
            env={**os.environ, **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
        ) as process,
    ):
        try:
            yield Program(process, log)
        finally:
            process.kill()
            process.wait(SECONDS)


# In place of `watchfiles`: the system tells nothing of what happens.
DEAF = """
def watch(*paths, stop_event, **_):
    while not stop_event.wait(0.05):
        yield set()
"""


def stand_in(folder: Path, module: str, source: str) -> dict[str, str]:
    """Return the environment in which `source` is the module of that name; it lies in `folder`."""
    folder.mkdir(exist_ok=True)
    (folder / f"{module}.py").write_text(source, encoding="utf-8")
    return {"PYTHONPATH": str(folder)}


def startup_hook(folder: Path, source: str) -> dict[str, str]:
    """Return the environment in which every Python program runs `source` before anything else; it lies in `folder`."""
    return stand_in(folder, "sitecustomize", source)
