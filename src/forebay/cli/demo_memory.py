"""How much memory the process really takes, as the system counts it."""

import threading
from types import TracebackType

import psutil  # type: ignore[import-untyped]

_INTERVAL = 0.005


class MemoryMeter:
    """The highest resident memory inside ``with``, above what it was when the meter was made.

    A thread looks every few milliseconds, so that what comes and goes between two batches is seen as well.
    """

    def __init__(self) -> None:
        self._process = psutil.Process()
        self._start = self._resident()
        self._highest = self._start
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memory meter", daemon=True)

    @property
    def peak_growth(self) -> int:
        """In bytes."""
        return self._highest - self._start

    @property
    def growth(self) -> int:
        """In bytes, at this moment."""
        return max(0, self._resident() - self._start)

    def _resident(self) -> int:
        return int(self._process.memory_info().rss)

    def _watch(self) -> None:
        while not self._stopping.wait(_INTERVAL):
            self._highest = max(self._highest, self._resident())

    def __enter__(self) -> "MemoryMeter":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self._highest = max(self._highest, self._resident())
