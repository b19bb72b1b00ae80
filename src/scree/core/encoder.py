"""Turn text into unit vectors with a model that lies in a folder on this machine.

An encoder is a folder: `encoder.json`, which says of what kind it is and how to feed it, and the files of that kind. An
ONNX encoder (`model.onnx`, `tokenizer.json`) takes the token ids of one window and returns its unit vector. The wheel
carries one, `builtin`.

The model sees a limited number of tokens at once, so a longer text is embedded in windows that overlap a little and
leave no token out. Every window is a run of its own, never part of a batch: the model quantises activations by the
range it meets, so in a batch a vector would depend on its neighbours, and an index would not equal a fresh one.
Several windows run side by side in threads of one core each, which needs no padding and is the fastest way too.

Nothing here downloads, trains, pools over chunks or prints, and nothing heavy is imported before an encoder is loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import deque
from collections.abc import Generator, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from scree.errors import EncoderError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BUILTIN = "builtin"
BUILTIN_FOLDER = Path(__file__).resolve().parents[1] / "models" / "minilm"

MANIFEST_NAME = "encoder.json"

# Goes into every fingerprint; raise it when the code below makes other vectors from the same folder.
ALGORITHM = 1

# Threads used unless the caller says otherwise: embedding is background work on somebody's machine, and every thread
# holds about 10 MB.
MAX_DEFAULT_THREADS = 4

# Passages in work or waiting for each thread: enough that one passage of many windows, or a caller that writes to disk
# between two results, lets no thread run dry; few enough to be done at once when the process ends.
PASSAGES_AHEAD = 8

# Windows of a query that are read: of 128 tokens about 14,000 characters of English, a third of a second. More never
# comes from a question.
MAX_QUERY_WINDOWS = 32

# Characters tokenised in one go. The tokenizer needs some 200 bytes for each character; a chunk is far below this.
SLICE_CHARS = 16_384


@dataclass(frozen=True, slots=True)
class Passage:
    """A text to embed.

    Attributes:
        context: put in front of every window of the text: title and heading trail, or path and name.
        text: what is embedded.
        windows: how many windows are made at most, from the start of the text on; None for all.
    """

    context: str
    text: str
    windows: int | None = None


class Encoder(Protocol):
    """Makes unit vectors of text. May be used from several threads at once.

    Attributes:
        fingerprint: hex digest over weights, tokenizer and settings; vectors of equal fingerprints can be compared.
        dimension: length of a vector.
    """

    fingerprint: str
    dimension: int

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector (dimension,) of a query, whatever `text` is; it waits for no other call."""
        ...

    def encode_documents(self, passages: Iterable[Passage]) -> Generator[NDArray[np.float32], None, None]:
        """Yield unit rows (windows, dimension), at least one, for each passage in order.

        Passages are taken only as they are needed, and in the thread that iterates, while others are being embedded.
        Whoever stops early closes the generator.
        """
        ...


@dataclass(frozen=True, slots=True)
class Manifest:
    """What the `encoder.json` of a folder says.

    Attributes:
        folder: where the files lie.
        kind: `onnx`.
        dimension: length of a vector.
        sha256: hex digest of each file by its name; a file is checked against it before it is loaded.
        window_tokens: tokens the model sees at once, its special tokens and the context included.
        overlap_tokens: tokens two neighbouring windows share at least, so that most sentences are whole in one.
        context_tokens: tokens of the context that are seen; of a longer one the last, which are the most specific.
        query_prefix: put in front of a query, as the model was trained.
        document_prefix: put in front of every window of a passage, as the model was trained.
        fingerprint: hex digest over all of this; it covers the files through their digests.
    """

    folder: Path
    kind: str
    dimension: int
    sha256: Mapping[str, str]
    window_tokens: int
    overlap_tokens: int
    context_tokens: int
    query_prefix: str
    document_prefix: str
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        facts = {name: getattr(self, name) for name in MANIFEST_KEYS}
        text = json.dumps([ALGORITHM, facts], sort_keys=True)
        object.__setattr__(self, "fingerprint", hashlib.sha256(text.encode()).hexdigest())

    @classmethod
    def read(cls, name: str) -> Manifest:
        """Read the manifest of the encoder `name`: `builtin`, or the path of a folder.

        Cheap: one small file, nothing heavy imported.

        Raises:
            EncoderError: there is no such folder, or its `encoder.json` is missing or not as described above.
        """
        folder = BUILTIN_FOLDER if name == BUILTIN else Path(name)
        path = folder / MANIFEST_NAME
        try:
            facts = json.loads(path.read_bytes())
        except FileNotFoundError:
            raise EncoderError(
                f'There is no encoder in "{folder}": name "{BUILTIN}" or a folder that holds {MANIFEST_NAME}.'
            ) from None
        except (OSError, ValueError) as error:
            raise EncoderError(f'Cannot read "{path}": {error}.') from error
        if not isinstance(facts, dict):
            raise EncoderError(f'"{path}" holds no JSON object.')
        for key, kind in MANIFEST_KEYS.items():
            if not isinstance(facts.get(key), kind):
                raise EncoderError(f'"{path}" needs "{key}", of the type {kind.__name__}.')
        return cls(folder=folder, **{key: facts[key] for key in MANIFEST_KEYS})

    def file(self, name: str) -> Path:
        """Return the path of a file of the folder after comparing its digest.

        Raises:
            EncoderError: the file is missing, unreadable, or not the one the manifest was written for.
        """
        path = self.folder / name
        try:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
        except OSError as error:
            raise EncoderError(f'Cannot read the encoder file "{path}": {error.strerror}.') from error
        if digest != self.sha256.get(name):
            raise EncoderError(
                f'The encoder file "{path}" is damaged or not the one {MANIFEST_NAME} describes; install it again.'
            )
        return path


MANIFEST_KEYS: Mapping[str, type] = {
    "kind": str,
    "dimension": int,
    "sha256": dict,
    "window_tokens": int,
    "overlap_tokens": int,
    "context_tokens": int,
    "query_prefix": str,
    "document_prefix": str,
}


def load_encoder(name: str, *, threads: int | None = None) -> Encoder:
    """Load the encoder `name`: `builtin`, or the path of a folder.

    Args:
        name: `builtin` or a folder.
        threads: cores that `encode_documents` may use; the default is every core this process may use, at most 4.

    Raises:
        EncoderError: the folder, its files or the runtime cannot be used; the sentence says which.
    """
    manifest = Manifest.read(name)
    if manifest.kind != "onnx":
        raise EncoderError(f'The encoder in "{manifest.folder}" is of the unknown kind "{manifest.kind}".')
    return OnnxEncoder(manifest, threads or min(usable_cores(), MAX_DEFAULT_THREADS))


class OnnxEncoder:
    """An encoder run by ONNX Runtime on the CPU, one window and one core at a time."""

    def __init__(self, manifest: Manifest, threads: int) -> None:
        """Load model and tokenizer.

        Args:
            manifest: what the folder says about itself.
            threads: cores that `encode_documents` may use.

        Raises:
            EncoderError: a file is missing or damaged, or a library is not installed or cannot load it.
        """
        self.fingerprint = manifest.fingerprint
        self.dimension = manifest.dimension
        self._threads = threads
        self._session = _load_session(manifest.file("model.onnx"))
        self._tokenizer = _load_tokenizer(manifest.file("tokenizer.json"))
        self._start, self._end = self._special_tokens()
        self._context_tokens = manifest.context_tokens
        self._overlap = manifest.overlap_tokens
        self._room = manifest.window_tokens - len(self._start) - len(self._end)
        self._query_prefix = self._tokens(manifest.query_prefix)
        self._document_prefix = self._tokens(manifest.document_prefix)
        longest = max(len(self._query_prefix), len(self._document_prefix) + self._context_tokens)
        if self._room - longest <= self._overlap:
            raise EncoderError(
                f'The encoder in "{manifest.folder}" leaves no room for text in {manifest.window_tokens} tokens.'
            )

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Return the unit vector (dimension,) of `text`, any string.

        A query longer than one window is the mean of its windows, brought back to unit length; what lies past
        `MAX_QUERY_WINDOWS` is not seen. Runs in the caller's thread.
        """
        import numpy as np

        mean = self._embed(self._query_prefix, self._tokens(text), MAX_QUERY_WINDOWS).mean(axis=0)
        unit: NDArray[np.float32] = mean / np.linalg.norm(mean)
        return unit

    def encode_documents(self, passages: Iterable[Passage]) -> Generator[NDArray[np.float32], None, None]:
        """Yield unit rows (windows, dimension), at least one, for each passage in order.

        The threads live as long as the iteration. Closing it early waits only for the passages being embedded then.
        """
        pool = ThreadPoolExecutor(self._threads, thread_name_prefix="encoder")
        ahead: deque[Future[NDArray[np.float32]]] = deque()
        try:
            for passage in passages:
                ahead.append(pool.submit(self._embed_passage, passage))
                if len(ahead) >= PASSAGES_AHEAD * self._threads:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()
        finally:
            pool.shutdown(cancel_futures=True)

    def _embed_passage(self, passage: Passage) -> NDArray[np.float32]:
        context = self._tokens(passage.context)
        context = context[max(0, len(context) - self._context_tokens) :]
        head, tokens = self._document_prefix + context, self._tokens(passage.text)
        if passage.windows is not None:
            # Cut here, so that a single window is a full one.
            tokens = tokens[: passage.windows * (self._room - len(head))]
        return self._embed(head, tokens, passage.windows)

    def _embed(self, head: list[int], tokens: list[int], limit: int | None = None) -> NDArray[np.float32]:
        """Return the rows of the windows of `tokens` (the first `limit` of them), each with `head` in front."""
        import numpy as np

        rows = []
        for part in windows(len(tokens), self._room - len(head), self._overlap)[:limit]:
            ids = np.array([[*self._start, *head, *tokens[part], *self._end]], np.int64)
            rows.append(self._session.run(["embedding"], {"input_ids": ids})[0])
        stacked: NDArray[np.float32] = np.concatenate(rows)
        return stacked

    def _tokens(self, text: str) -> list[int]:
        """Return the token ids of `text`, without special tokens; half a surrogate pair counts as a question mark."""
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()
        ids: list[int] = []
        for start in range(0, len(text), SLICE_CHARS):
            ids += self._tokenizer.encode(text[start : start + SLICE_CHARS], add_special_tokens=False).ids
        return ids

    def _special_tokens(self) -> tuple[list[int], list[int]]:
        """Return what the tokenizer puts before and after a text ([CLS] and [SEP] for BERT)."""
        plain = self._tokenizer.encode("a", add_special_tokens=False).ids
        whole = self._tokenizer.encode("a").ids
        before = whole.index(plain[0])
        return whole[:before], whole[before + len(plain) :]


def windows(tokens: int, size: int, overlap: int) -> list[slice]:
    """Return slices that cover `tokens` tokens, each of at most `size`, neighbours sharing at least `overlap`.

    As few slices as that takes, all of the same length (no short rest that says little), spread evenly; one empty slice
    where there are no tokens. `size` must be above `overlap`.
    """
    if tokens <= size:
        return [slice(0, tokens)]
    count = -(-(tokens - overlap) // (size - overlap))
    length = -(-(tokens + (count - 1) * overlap) // count)
    starts = [number * (tokens - length) // (count - 1) for number in range(count)]
    return [slice(start, start + length) for start in starts]


def usable_cores() -> int:
    """Return the number of cores this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _load_session(path: Path) -> Any:
    try:
        import onnxruntime
    except ImportError as error:
        raise EncoderError(f"The encoder needs onnxruntime, which cannot be imported: {error}.") from error
    # Warnings about graphs and missing GPUs would land on the user's terminal.
    errors_only = 3
    onnxruntime.set_default_logger_severity(errors_only)
    onnxruntime.disable_telemetry_events()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = errors_only
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # The exported graph is already as it should run. The higher levels would fuse addition and layer normalisation into
    # an operator that is five times slower.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    # A memory plan is kept for every length met: it saves no time here, and costs some megabytes.
    options.enable_mem_pattern = False
    try:
        return onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:
        raise EncoderError(f'ONNX Runtime cannot load "{path}": {error}.') from error


def _load_tokenizer(path: Path) -> Any:
    try:
        import tokenizers
    except ImportError as error:
        raise EncoderError(f"The encoder needs tokenizers, which cannot be imported: {error}.") from error
    try:
        tokenizer = tokenizers.Tokenizer.from_file(os.fspath(path))
    except Exception as error:
        raise EncoderError(f'tokenizers cannot load "{path}": {error}.') from error
    # The file may come with a limit and padding meant for training.
    tokenizer.no_truncation()
    tokenizer.no_padding()
    # "[SEP]" written in a document is six characters, not the end of the input.
    tokenizer.encode_special_tokens = True
    return tokenizer
