"""How far long work has come: a line on a terminal, where somebody may be looking, otherwise sometimes in the log."""

import sys
import time
from collections.abc import Callable
from types import TracebackType

from forebay.system import on_terminal

# What is done before this needs no explanation.
_QUIET = 1.0
_REFRESH = 0.2
# A log is read afterwards: the first line after so many seconds, then after twice as many each time, up to the last.
_LOG_FIRST, _LOG_MOST = 10.0, 600.0


class Progress:
    """A line on the standard error output, if that is a terminal and the work takes longer than a moment.

    Where it is none, as in a notebook or a batch job, the logger "forebay" is told, with the level INFO.
    `wanted` True shows the line in any case, False has neither.
    """

    def __init__(self, what: str, wanted: bool | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._what = what
        self._wanted = wanted
        self._clock = clock
        self._began = clock()
        self._next = self._began + _QUIET
        self._next_logged, self._between = self._began + _LOG_FIRST, _LOG_FIRST
        self._done = (0, "")
        self._shown = self._logged = False

    def update(self, count: int, unit: str) -> None:
        """So much is done."""
        self._done = (count, unit)
        now = self._clock()
        if now < self._next or self._wanted is False:
            return
        self._next = now + _REFRESH
        if (self._wanted or on_terminal()) and _write(f"\r\x1b[K{self._what}: {self._text(now)}"):
            self._shown = True
        elif now >= self._next_logged:
            self._between = min(2 * self._between, _LOG_MOST)
            self._next_logged = now + self._between
            self._log("so far", now)

    def _log(self, when: str, now: float) -> None:
        # Those who have nothing to log need not wait for it.
        import logging

        seconds = f"{now - self._began:,.0f}"
        try:
            logging.getLogger("forebay").info("%s: %s, %s s %s", self._what, self._text(now), seconds, when)
            self._logged = True
        except Exception:
            # The program's handlers may raise, as those of the standard library do on a closed error output.
            self._logged = False

    def _text(self, now: float) -> str:
        count, unit = self._done
        return f"{count:,} {unit}, {count / (now - self._began):,.0f}/s"

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            _write("\r\x1b[K")
        if self._logged and kind is None:
            self._log("in all", self._clock())


def _write(text: str) -> bool:
    """Whether it could be written: nobody has to be there to read it."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except Exception:
        return False
    return True
