"""A line that tells how far long work has come, where somebody may be looking."""

import sys
import time
from types import TracebackType

# What is done before this needs no explanation.
_QUIET = 1.0
_REFRESH = 0.2


class Progress:
    """Written to the standard error output, if that is a terminal and the work takes longer than a moment.

    `wanted` True shows it in any case, False never.
    """

    def __init__(self, what: str, wanted: bool | None = None) -> None:
        self._what = what
        self._wanted = wanted
        self._next = time.monotonic() + _QUIET
        self._began = time.monotonic()
        self._shown = False

    def update(self, count: int, unit: str) -> None:
        """So much is done."""
        now = time.monotonic()
        if now < self._next or not (sys.stderr.isatty() if self._wanted is None else self._wanted):
            return
        self._next = now + _REFRESH
        self._shown = True
        rate = count / (now - self._began)
        sys.stderr.write(f"\r\x1b[K{self._what}: {count:,} {unit}, {rate:,.0f}/s")
        sys.stderr.flush()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
