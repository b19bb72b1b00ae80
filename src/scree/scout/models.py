"""Which encoder goes with an index, and which mode is its default.

Nothing heavy is loaded here before an encoder is asked for.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import cast

from scree.core.encoder import BUILTIN, MANIFEST_NAME, Encoder, Manifest, load_encoder
from scree.errors import ArgumentError, ModelMismatchError
from scree.scout.arguments import MODES, Mode
from scree.scout.snapshot import Facts

NONE = "none"

# The one there is: weights run on ONNX Runtime's CPU provider.
DEVICES = ("cpu",)

# Where a model's `encoder.json` names no mode that validation chose for it.
FALLBACK_MODE: Mode = "hybrid"


def model_name(name: str) -> str:
    """Return a model's name as an index records it: `builtin`, or the folder from the root of the file system on."""
    return name if name == BUILTIN else str(Path(name).absolute())


class ModelChoice:
    """The encoder of an index, or none.

    Attributes:
        default_mode: of searches that name none.
    """

    def __init__(self, manifest: Manifest | None, name: str, threads: int | None) -> None:
        self._manifest = manifest
        self._name = name
        self._threads = threads
        self.default_mode: Mode = recorded_mode(manifest) if manifest else "lexical"

    @classmethod
    def of(cls, model: str | None, facts: Facts, threads: int | None = None) -> ModelChoice:
        """Choose what was asked for.

        Args:
            model: `builtin`, a folder or `none`; None for what the index was built with.
            facts: of the index.
            threads: cores the encoder may use; None for its default.

        Raises:
            ModelMismatchError: the index was built with another model, or without one.
            EncoderError: there is no such model.
        """
        name = model if model is not None else facts.model
        if name is None or name == NONE:
            return cls(None, NONE, threads)
        if facts.model_fingerprint is None:
            raise ModelMismatchError(
                f"The index was built without a model; build it again with --model {name}, or search with --model none."
            )
        manifest = Manifest.read(name)
        if manifest.fingerprint != facts.model_fingerprint:
            raise ModelMismatchError(
                f'The index was built with another model than "{name}" is now; build it again with --model {name}.'
            )
        return cls(manifest, name, threads)

    def again(self, model: str | None, facts: Facts) -> ModelChoice:
        """Choose for an index that replaced this one's; an encoder that is loaded is kept if it is the same.

        Raises:
            ModelMismatchError, EncoderError: as for `of`.
        """
        new = ModelChoice.of(model, facts, self._threads)
        same = new._manifest and self._manifest and new._manifest.fingerprint == self._manifest.fingerprint
        return self if same else new

    @cached_property
    def encoder(self) -> Encoder | None:
        """The encoder, loaded when it is first asked for.

        Raises:
            EncoderError: it cannot be loaded.
        """
        return load_encoder(self._name, threads=self._threads) if self._manifest else None

    def mode(self, asked: Mode | None) -> Mode:
        """Return the mode of a search.

        Raises:
            ArgumentError: it needs a model and there is none.
        """
        if asked is None:
            return self.default_mode
        if asked != "lexical" and self._manifest is None:
            raise ArgumentError(f"mode must be lexical, not {asked}: this index is searched without a model.")
        return asked


def recorded_mode(manifest: Manifest) -> Mode:
    """Return the mode that validation chose for a model: `default_mode` in its `encoder.json`."""
    facts = json.loads((manifest.folder / MANIFEST_NAME).read_bytes())
    mode = facts.get("default_mode")
    return cast(Mode, mode) if mode in MODES else FALLBACK_MODE
