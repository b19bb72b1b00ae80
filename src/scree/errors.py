"""The error tree of scree and micro-scout.

Every error a user can cause or meet is a `ScreeError`, and its text is one sentence that names the thing and says what
to do. Commands print that sentence and exit with `exit_code`; MCP tools return it as a tool error. Anything else that
escapes is a bug.
"""

from __future__ import annotations


class ScreeError(Exception):
    """Base of every error meant for a user; `str(error)` is one complete sentence."""

    exit_code = 2


class ArgumentError(ScreeError):
    """An argument or setting is outside what is allowed; the sentence names it and the range."""


class RootError(ScreeError):
    """No usable project root: missing, not a folder, a home folder or a file-system root."""


class RefusedError(ScreeError):
    """A path that must not be read: ignored, or outside the project."""


class NotFoundError(ScreeError):
    """A path that would be indexed, but no such file exists."""


class ChangedFileError(ScreeError):
    """A file is not as it was indexed, so that nothing is said of it."""


class SkippedFile(ScreeError):
    """A file that is never indexed because of what it is; `reason` is a short printable phrase."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class EncoderError(ScreeError):
    """The encoder's weights or its runtime cannot be used."""


class StorageError(ScreeError):
    """Base of everything that can be wrong with an index file."""


class NoIndexError(StorageError):
    """There is no index yet, or nothing in it."""


class DamagedIndexError(StorageError):
    """The file is not an intact SQLite database."""


class LockedIndexError(StorageError):
    """Another program holds the database longer than is waited for."""


class ReadOnlyIndexError(StorageError):
    """The index or its folder cannot be written."""


class SchemaError(StorageError):
    """The index was written by a version of the schema this program cannot use."""


class ModelMismatchError(StorageError):
    """The index holds embeddings of another encoder."""
