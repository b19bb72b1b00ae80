"""Real git repositories for tests."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

GIT_SECONDS = 60.0


class GitRepository:
    """A git work tree on disk, made by the real git."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, path: Path, files: Mapping[str, str | bytes] | None = None) -> GitRepository:
        """Initialise a repository at `path`; `files`, if any, are written and committed."""
        path.mkdir(parents=True, exist_ok=True)
        repository = cls(path)
        repository.git("init", "--quiet")
        if files:
            repository.write(files)
            repository.commit()
        return repository

    def write(self, files: Mapping[str, str | bytes]) -> None:
        """Write files, given as relative path and content; folders are made as needed."""
        for name, content in files.items():
            target = self.path / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.encode() if isinstance(content, str) else content)

    def git(self, *arguments: str | os.PathLike[str]) -> str:
        """Run git in the work tree and return what it printed.

        Raises:
            AssertionError: git failed; the message is git's own.
        """
        done = subprocess.run(
            ["git", "-C", self.path, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_SECONDS,
            check=False,
        )
        if done.returncode:
            raise AssertionError(f"git {arguments} exited with {done.returncode}: {os.fsdecode(done.stderr)}")
        return os.fsdecode(done.stdout)

    def commit(self, message: str = "change") -> None:
        """Commit everything that is not ignored."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
