from __future__ import annotations

import errno
import fcntl
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from scree.docs import lease as lease_module
from scree.docs.lease import LOCK_NAME, WriterLease
from scree.errors import ReadOnlyIndexError, StorageError
from tests.ordinary_user import ordinary_user

# Takes the lease, says how that went, and lives until its standard input ends.
HOLD = """
import sys
from pathlib import Path
from scree.docs.lease import WriterLease
lease = WriterLease(Path(sys.argv[1]))
print(lease.acquire(), flush=True)
sys.stdin.read()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / ".scree"


@contextmanager
def process_holding(folder: Path) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, folder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "True\n"
            yield process
        finally:
            process.kill()


def test_one_holds_it_and_the_others_learn_who(folder: Path) -> None:
    first, second = WriterLease(folder), WriterLease(folder)
    assert first.holder() is None
    assert first.acquire()
    assert first.acquire()
    assert not second.acquire()
    assert first.holder() == second.holder() == os.getpid()
    first.release()
    first.release()
    assert first.holder() is second.holder() is None
    assert second.acquire()
    assert not first.acquire()
    second.release()


@pytest.mark.requirement("index-location")
def test_the_lock_lies_beside_the_index_for_its_owner_only(folder: Path) -> None:
    lease = WriterLease(folder)
    assert lease.acquire()
    assert os.listdir(folder) == ["writer.lock"]
    assert (folder / "writer.lock").stat().st_mode & 0o777 == 0o600
    lease.release()


def test_asking_makes_nothing(folder: Path) -> None:
    assert WriterLease(folder).holder() is None
    assert not folder.exists()


@pytest.mark.requirement("writer-killed")
def test_the_kernel_releases_it_when_its_holder_is_killed(folder: Path) -> None:
    lease = WriterLease(folder)
    with process_holding(folder) as process:
        assert not lease.acquire()
        assert lease.holder() == process.pid
        process.send_signal(signal.SIGKILL)
        assert process.wait(10) == -signal.SIGKILL
        assert (folder / LOCK_NAME).read_text() == f"{process.pid}\n"
        assert lease.holder() is None
        assert lease.acquire()
        assert lease.holder() == os.getpid()
        lease.release()


@pytest.mark.requirement("writer-killed")
@pytest.mark.parametrize("left", ["1\n", "{pid}\n", "999999999\n", "", "not a pid", "9" * 500])
def test_what_a_file_left_behind_says_means_nothing(folder: Path, left: str) -> None:
    folder.mkdir()
    (folder / LOCK_NAME).write_text(left.replace("{pid}", str(os.getpid())))
    lease = WriterLease(folder)
    assert lease.holder() is None
    assert lease.acquire()
    assert (folder / LOCK_NAME).read_text() == f"{os.getpid()}\n"
    lease.release()


def test_a_stopped_holder_keeps_it(folder: Path) -> None:
    with process_holding(folder) as process:
        process.send_signal(signal.SIGSTOP)
        assert not WriterLease(folder).acquire()
        assert WriterLease(folder).holder() == process.pid


def test_the_pid_of_the_holder_before_is_not_taken_for_the_holders(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A holder locks first and then writes its pid; who looks in between waits for it."""
    with process_holding(folder) as dead:
        dead.kill()
        dead.wait()
    holder, asking = WriterLease(folder), WriterLease(folder)
    truncate = os.ftruncate
    seen: list[int | None] = []
    thread = threading.Thread(target=lambda: seen.append(asking.holder()))
    pauses = threading.Semaphore(0)

    def pause(_: float) -> None:
        pauses.release()

    def locked(descriptor: int, length: int) -> None:
        thread.start()
        assert pauses.acquire(timeout=10)
        truncate(descriptor, length)

    monkeypatch.setattr(lease_module, "PID_ATTEMPTS", 1_000_000)
    monkeypatch.setattr(time, "sleep", pause)
    monkeypatch.setattr(os, "ftruncate", locked)
    assert holder.acquire()
    thread.join(10)
    assert seen == [os.getpid()]
    holder.release()


def test_a_holder_without_a_name_is_none(folder: Path) -> None:
    folder.mkdir()
    (folder / LOCK_NAME).touch()
    with (folder / LOCK_NAME).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert WriterLease(folder).holder() is None
        assert not WriterLease(folder).acquire()


def test_asking_who_holds_it_never_makes_an_attempt_fail(folder: Path) -> None:
    finished = threading.Event()

    def ask() -> None:
        while not finished.is_set():
            WriterLease(folder).holder()

    asking = [threading.Thread(target=ask) for _ in range(4)]
    for thread in asking:
        thread.start()
    try:
        for _ in range(100):
            lease = WriterLease(folder)
            assert lease.acquire()
            lease.release()
    finally:
        finished.set()
        for thread in asking:
            thread.join()


def test_of_many_who_try_at_once_exactly_one_gets_it(folder: Path) -> None:
    for _ in range(10):
        leases = [WriterLease(folder) for _ in range(8)]
        start = threading.Barrier(len(leases))
        won: list[bool] = []

        def attempt(lease: WriterLease, start: threading.Barrier = start, won: list[bool] = won) -> None:
            start.wait()
            won.append(lease.acquire())

        threads = [threading.Thread(target=attempt, args=(lease,)) for lease in leases]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(won) == 1
        for lease in leases:
            lease.release()


def test_a_program_started_meanwhile_does_not_inherit_it(folder: Path) -> None:
    lease = WriterLease(folder)
    assert lease.acquire()
    with subprocess.Popen(["sleep", "60"], close_fds=False) as other:
        try:
            lease.release()
            assert lease.holder() is None
            assert lease.acquire()
            lease.release()
        finally:
            other.kill()


def test_it_is_not_taken_on_a_file_that_was_deleted_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flock = fcntl.flock
    deleted = False

    def locked(descriptor: int, kind: int) -> None:
        nonlocal deleted
        flock(descriptor, kind)
        if not deleted:
            deleted = True
            shutil.rmtree(folder)

    monkeypatch.setattr(fcntl, "flock", locked)
    lease = WriterLease(folder)
    assert lease.acquire()
    assert lease.intact()
    assert not WriterLease(folder).acquire()
    lease.release()


def test_a_deleted_folder_ends_it_for_all_who_look(folder: Path) -> None:
    lease = WriterLease(folder)
    assert not lease.intact()
    assert lease.acquire()
    assert lease.intact()
    shutil.rmtree(folder)
    assert not lease.intact()
    other = WriterLease(folder)
    assert other.acquire()
    assert other.intact()
    assert not lease.intact()
    lease.release()
    assert not lease.intact()
    assert other.intact()
    other.release()


def test_the_project_itself_is_never_made(tmp_path: Path) -> None:
    with pytest.raises(ReadOnlyIndexError, match="cannot be written"):
        WriterLease(tmp_path / "gone" / ".scree").acquire()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", ["folder", "lock"])
def test_links_are_not_followed(tmp_path: Path, folder: Path, kind: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    if kind == "folder":
        folder.symlink_to(elsewhere)
    else:
        folder.mkdir()
        (folder / LOCK_NAME).symlink_to(elsewhere / "target")
    with pytest.raises(ReadOnlyIndexError, match=r"\.scree"):
        WriterLease(folder).acquire()
    assert os.listdir(elsewhere) == []


@pytest.mark.requirement("index-read-only")
def test_a_folder_that_cannot_be_written_has_a_sentence() -> None:
    with ordinary_user() as folder:
        folder.chmod(0o500)
        try:
            with pytest.raises(ReadOnlyIndexError, match=r"cannot be written \(Permission denied\)"):
                WriterLease(folder / ".scree").acquire()
            with pytest.raises(ReadOnlyIndexError, match="cannot be written"):
                WriterLease(folder).acquire()
            assert WriterLease(folder).holder() is None
        finally:
            folder.chmod(0o700)


def test_a_lock_of_another_user_has_a_sentence_for_who_asks() -> None:
    with ordinary_user() as folder:
        lock = folder / LOCK_NAME
        lock.touch(mode=0o000)
        with pytest.raises(ReadOnlyIndexError, match="Permission denied"):
            WriterLease(folder).holder()


@pytest.mark.parametrize(
    ("number", "sentence"), [(errno.ENOLCK, "has no locks"), (errno.EOPNOTSUPP, "has no locks"), (errno.EIO, "written")]
)
def test_a_file_system_without_locks_has_a_sentence_and_leaks_nothing(
    folder: Path, monkeypatch: pytest.MonkeyPatch, number: int, sentence: str
) -> None:
    def fail(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", fail)
    folder.mkdir()
    (folder / LOCK_NAME).touch()
    before = os.listdir("/dev/fd")
    with pytest.raises(StorageError, match=sentence):
        WriterLease(folder).acquire()
    with pytest.raises(StorageError, match=sentence):
        WriterLease(folder).holder()
    assert len(os.listdir("/dev/fd")) == len(before)


def test_a_full_disk_does_not_leave_it_locked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(StorageError, match=r"disk .* is full"):
            WriterLease(folder).acquire()
    lease = WriterLease(folder)
    assert lease.acquire()
    lease.release()


def test_it_is_free_again_when_a_process_exits_without_releasing_it(folder: Path) -> None:
    process = multiprocessing.get_context("spawn").Process(target=WriterLease(folder).acquire)
    process.start()
    process.join(30)
    assert process.exitcode == 0
    lease = WriterLease(folder)
    assert lease.acquire()
    lease.release()
