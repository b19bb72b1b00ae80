"""How fast whole first syncs embed, beside ONNX Runtime alone and beside the original model, on the same windows."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from unittest import mock

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from benchmarks.corpus import Markdown, write
from benchmarks.report import progress
from scree.core.encoder import BUILTIN_FOLDER
from scree.docs.session import Session
from scree.docs.settings import Settings
from scree.docs.sync import silent

RIVAL = Path(__file__).with_name("sentence_transformers_rival.py")


@dataclass(slots=True)
class FirstSyncs:
    """What was measured, one element a round, in seconds.

    Attributes:
        scree: a whole first sync: find the files, read, chunk, tokenise, embed, store.
        runtime: ONNX Runtime on the token ids of the same windows, prepared beforehand, in as many threads.
        original: sentence-transformers with the fp32 model on the text of the same windows; empty where it is missing.
        windows: how many there were.
        tokens: how many there were in them.
    """

    scree: list[float] = field(default_factory=list)
    runtime: list[float] = field(default_factory=list)
    original: list[float] = field(default_factory=list)
    windows: int = 0
    tokens: int = 0


def first_syncs(folder: Path, rounds: Sequence[Sequence[Markdown]], *, threads: int, rival_python: str) -> FirstSyncs:
    """Measure first syncs, each over documents of its own.

    Args:
        folder: to work in; it must not exist.
        rounds: the documents of each round.
        threads: how many each contestant may use.
        rival_python: the Python that has sentence-transformers.
    """
    results = FirstSyncs()
    folder.mkdir()
    session = Session(folder, Settings(threads=threads))
    session.encoder()
    tokenizer = Tokenizer.from_file(str(BUILTIN_FOLDER / "tokenizer.json"))
    rival = _Rival.start(rival_python, threads)
    # What happens once in a process is no throughput: imports, and the first use of each library.
    with recorded() as windows:
        _first_sync(session, rounds[0][:1])
    _runtime_alone(windows, threads)
    for documents in rounds:
        # Forth and back, so that a machine that gets slower or faster meanwhile favours nobody.
        with recorded() as windows:
            syncs = _first_sync(session, documents)
        runs = _runtime_alone(windows, threads)
        if rival is not None:
            results.original.append(rival.seconds([tokenizer.decode(ids[0].tolist()) for ids in windows.ids]))
        runs += _runtime_alone(windows, threads)
        syncs += _first_sync(session, documents)
        results.scree.append(syncs / 2)
        results.runtime.append(runs / 2)
        results.windows += len(windows.ids)
        results.tokens += sum(ids.size for ids in windows.ids)
    if rival is not None:
        rival.stop()
    return results


@dataclass(slots=True)
class Windows:
    """What an ONNX Runtime session was fed.

    Attributes:
        ids: the token ids (1, tokens) of each window.
        session: the last one that was fed.
    """

    ids: list[NDArray[np.int64]] = field(default_factory=list)
    session: onnxruntime.InferenceSession = None


@contextmanager
def recorded() -> Iterator[Windows]:
    """Record every window that is embedded inside."""
    windows = Windows()
    run = onnxruntime.InferenceSession.run

    def record(
        session: onnxruntime.InferenceSession, names: Sequence[str], feed: dict[str, NDArray[np.int64]]
    ) -> object:
        windows.session = session
        windows.ids.append(feed["input_ids"])
        return run(session, names, feed)

    with mock.patch.object(onnxruntime.InferenceSession, "run", record):
        yield windows


def _first_sync(session: Session, documents: Sequence[Markdown]) -> float:
    """Return the seconds that a first sync of `documents` takes with the encoder loaded."""
    shutil.rmtree(session.root)
    write(session.root, documents)
    started = time.perf_counter()
    session.reindex_now(None, silent)
    return time.perf_counter() - started


def _runtime_alone(windows: Windows, threads: int) -> float:
    """Return the seconds that nothing but ONNX Runtime takes for `windows`."""
    waiting = iter(windows.ids)  # shared by the threads: each takes the next window when it is done with one

    def work() -> None:
        for ids in waiting:
            windows.session.run(["embedding"], {"input_ids": ids})

    with ThreadPoolExecutor(threads) as pool:
        started = time.perf_counter()
        for done in [pool.submit(work) for _ in range(threads)]:
            done.result()
        return time.perf_counter() - started


class _Rival:
    """The original model in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    @classmethod
    def start(cls, python: str, threads: int) -> _Rival | None:
        """Start it and wait until its model is loaded; None, and a line that says why, where it cannot run."""
        process = subprocess.Popen(
            [python, RIVAL, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        assert process.stdout is not None
        if process.stdout.readline():
            return cls(process)
        reason = process.communicate()[1].strip().splitlines()
        progress(f"  without sentence-transformers: {reason[-1] if reason else 'it does not start'}")
        return None

    def seconds(self, texts: Sequence[str]) -> float:
        """Return the seconds that embedding `texts` takes."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(texts), file=self._process.stdin, flush=True)
        return float(self._process.stdout.readline())

    def stop(self) -> None:
        """End the process."""
        self._process.communicate()
