"""What a look at a file without reading it tells, and when that proves that the file has not changed.

Nothing here looks at the disk or at the clock.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Self

# A file changed within one tick of the file system's clock after it was read looks as it did when it was read. Local
# file systems tick every 10 ms or faster; those that keep whole seconds are known by times without a fraction.
TICK_NS = 20_000_000
WHOLE_SECONDS_TICK_NS = 2_000_000_000


@dataclass(frozen=True, slots=True)
class FileState:
    """What a look at a file without reading it tells; equal states mean an unchanged file.

    Sizes are in bytes, times in nanoseconds since 1970.
    """

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int

    @classmethod
    def of(cls, stat: os.stat_result) -> Self:
        """Take the state from what `os.stat` returned."""
        # Some file systems number files with all 64 bits, and keep times centuries away; SQLite's integers are signed.
        return cls(*map(_signed, (stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino)))

    def holds(self, read_ns: int, now: FileState) -> bool:
        """Whether a file that had this state when it was read is proven by its present one to be as it was.

        Args:
            read_ns: when it was read, nanoseconds since 1970.
            now: its present state.
        """
        # Nobody can set a ctime, and every change moves it, if only by a tick of the clock.
        tick_ns = WHOLE_SECONDS_TICK_NS if self.ctime_ns % 1_000_000_000 == 0 else TICK_NS
        return self == now and read_ns - self.ctime_ns > tick_ns


def _signed(number: int) -> int:
    """Return the number that has the same lowest 64 bits as `number` and fits into SQLite's integers."""
    return (number + 2**63) % 2**64 - 2**63
