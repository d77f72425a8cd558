"""A range of an object on its way."""

from forebay.errors import RemoteError
from forebay.remote_run import RemoteRun
from forebay.storage.backends import Backend
from forebay.storage.effort import Effort, ShortBody, asked
from forebay.storage.input_file import Bytes

# What libraries raise for bytes whose sum is not that which came with them.
_DAMAGED = frozenset({"FlexibleChecksumError"})


class Fetch:
    """Asked for when it is made; where it breaks off, the rest is asked for again when it is needed.

    `at` is the next byte to be taken, `stop` the one behind the last.
    """

    def __init__(self, backend: Backend, run: RemoteRun, start: int, stop: int) -> None:
        self._backend = backend
        self._run = run
        self.at = self._start = start
        self.stop = stop
        self._settled = self._again = False
        self._chunk = memoryview(b"")
        self._request = backend.fetch(start, stop)

    def read(self, into: Bytes) -> int:
        """Fill `into` as far as the range goes; how many bytes that were. FileError if they are not to be had."""
        target = into.data
        first, wanted = self.at, min(len(target), self.stop - self.at)
        effort = Effort(self._backend.path, self._run, first)
        while self.at < first + wanted or not self._complete(first, effort):
            if not self._chunk:
                self._chunk = self._next(effort)
            done = self.at - first
            count = min(wanted - done, len(self._chunk))
            target[done : done + count] = self._chunk[:count]
            self._chunk = self._chunk[count:]
            self.at += count
        return wanted

    def _complete(self, first: int, effort: Effort) -> bool:
        """Whether all is well with the bytes up to here. If not, they are to be read again from `first` on."""
        if self.at < self.stop or self._settled:
            return True
        try:
            # Libraries that add up what comes say so behind the last byte.
            effort.wait(self._request)
        except Exception as error:
            if type(error).__name__ in _DAMAGED:
                # A byte that was changed on the way is right the next time; one in the store is not.
                if first != self._start or self._again:
                    raise damaged(self._backend.path, first) from error
                effort.again(error)
                self._again = True
                self.at = first
                self._request = self._backend.fetch(first, self.stop)
                return False
        self._request.settle()
        self._settled = True
        return True

    def skip(self, count: int) -> None:
        """Take so many bytes and leave them."""
        effort = Effort(self._backend.path, self._run, self.at)
        while count:
            if not self._chunk:
                self._chunk = self._next(effort)
            passed = min(count, len(self._chunk))
            self._chunk = self._chunk[passed:]
            self.at += passed
            count -= passed

    def cancel(self) -> None:
        """Nobody wants the rest."""
        self._request.cancel()

    def _next(self, effort: Effort) -> memoryview:
        """Bytes from `at` on."""
        while True:
            try:
                data = effort.wait(self._request)
                if data is not None:
                    return self._checked(memoryview(data))
                raise ShortBody(f"{self.stop - self.at:,} bytes fewer came than were asked for")
            except Exception as error:
                self._request.cancel()
                effort.again(error)
            self._request = self._backend.fetch(self.at, self.stop)

    def _checked(self, data: memoryview) -> memoryview:
        if len(data) > self.stop - self.at:
            raise RemoteError(
                self._backend.path,
                f"gave {len(data):,} bytes where {self.stop - self.at:,} were asked for",
                self.at,
            )
        if not self._backend.checks:
            self._backend.confirm(asked(self._backend.path, self._run, self._backend.describe))
        return data


def damaged(path: str, offset: int) -> RemoteError:
    """The error for bytes that are as many as there should be, and not those that were stored."""
    return RemoteError(
        path,
        "its bytes do not match the checksum that its store has of them: they were damaged on the way or in the store "
        "(see RemoteOptions.checksum)",
        offset,
    )
