"""A producer that tells how far it has come, and the threads that there are."""

import gc
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

import forebay as fb

ROW_BY_ROW = fb.Options(block_bytes=1)
PATIENCE = 300  # Seconds after which something that must happen is held not to.


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("forebay")]


class Producer:
    """A generator of numbers that tells how far it has come and on which threads it ran."""

    def __init__(self, count: int, size: int | None = None) -> None:
        self.count = count
        self.size = size
        self.threads: set[int] = set()
        self.consumed = 0
        self.lead = 0
        self._made = 0
        self._changed = threading.Condition()

    def __call__(self) -> Iterator[Any]:
        for i in range(self.count):
            with self._changed:
                self.threads.add(threading.get_ident())
                self.lead = max(self.lead, i - self.consumed)
                self._made = i + 1
                self._changed.notify_all()
            yield i if self.size is None else np.full(self.size, i % 256, np.uint8)

    def wait_until_made(self, count: int) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._made >= count, PATIENCE)


def assert_no_thread_is_left() -> None:
    gc.collect()
    assert workers() == []
