# 本 📖 a shelf
"""Books."""

from __future__ import annotations

import functools
from .paper import Paper as Sheet

LIMIT = 10


class Shelf(list):
    """A shelf."""

    size = 3

    @property
    def full(self) -> bool:
        return len(self) >= self.size

    @full.setter
    def full(self, value: bool) -> None: ...

    class Inner:
        def deep(self):
            def deeper():
                return Sheet()

            return deeper()

    async def lend(
        self,
        to: str,
    ) -> None:
        self.check(to)


@functools.cache
@functools.wraps(
    Shelf,
)
def shelf() -> Shelf:
    return Shelf()


if LIMIT:

    def conditional(): ...

else:

    def conditional(): return lambda: 1


print(shelf())
