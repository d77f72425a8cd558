"""Calls of a file system that can be given up: on its event loop, where they are cancelled, or on a thread.

What comes of a call is put into a queue. Whoever gives up looks there no more, so that what comes late harms nobody.
"""

import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

from forebay.uninterrupted import uninterrupted

Put = Callable[[Any], None]

# Seconds to wait for a thread whose call nobody wants any more. One that hangs in a library cannot be ended.
_GRACE = 0.1


class Request(ABC):
    """A call under way. Used by one thread."""

    def __init__(self) -> None:
        # A result and True, or None or an error and False at the end.
        self._answers: SimpleQueue[tuple[Any, bool]] = SimpleQueue()

    def next(self, seconds: float) -> Any | None:
        """What came next, or None at the end. ``queue.Empty`` after so many seconds, and whatever the call raises."""
        value, more = self._answers.get(timeout=seconds)
        if not more and value is not None:
            raise value
        return value

    @abstractmethod
    def settle(self) -> None:
        """Everything that was wanted has come."""

    @abstractmethod
    def cancel(self) -> None:
        """Give it up. May be called again, and after its end."""

    def _put(self, value: Any) -> None:
        self._answers.put((value, True))

    def _end(self, error: BaseException | None = None) -> None:
        self._answers.put((error, False))


class LoopRequest(Request):
    """A coroutine on the event loop that fsspec runs: `work` is called there, and given where to put what comes."""

    def __init__(self, loop: Any, work: Callable[[Put], Awaitable[None]]) -> None:
        super().__init__()
        self._loop = loop
        self._task: Any = None
        loop.call_soon_threadsafe(self._begin, work)

    def _begin(self, work: Callable[[Put], Awaitable[None]]) -> None:
        self._task = self._loop.create_task(self._run(work))

    async def _run(self, work: Callable[[Put], Awaitable[None]]) -> None:
        try:
            await work(self._put)
        except Exception as error:
            self._end(error)
        else:
            self._end()

    def settle(self) -> None:
        """It ends by itself, and its connection can be used again."""

    def cancel(self) -> None:
        """The connection is closed with it."""
        # A loop that is closed has ended everything already.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        self._task.cancel()


class ThreadRequest(Request):
    """A call on a thread of its own, for libraries that cannot be told to stop."""

    def __init__(self, call: Callable[[], Any]) -> None:
        super().__init__()
        self._call = call
        self._thread = threading.Thread(target=self._run, name="forebay request", daemon=True)
        uninterrupted(self._thread.start)

    def _run(self) -> None:
        try:
            self._put(self._call())
        except BaseException as error:
            self._end(error)
        else:
            self._end()

    def settle(self) -> None:
        """The thread is about to end."""
        self._thread.join(_GRACE)

    def cancel(self) -> None:
        """The thread is waited for, unless it hangs."""
        self._thread.join(_GRACE)
