"""Stretches of files that are read one after another: the next is on its way while one is in use."""

from typing import Any, NamedTuple

from numpy.typing import NDArray

from forebay._native import Checking, Errands
from forebay.block.aligned import aligned_empty
from forebay.ledger import Lease
from forebay.storage.checked import read_checked

# A shorter one is there before a thread has woken up.
_LEAST = 1 << 20


class Stretch(NamedTuple):
    """Bytes of a file, which stays open as long as anybody refers to `owner`."""

    owner: object
    file: int
    offset: int
    nbytes: int


class Stretches:
    """Reads them for one who says each time which is likely to be next; used by one thread at a time.

    A thread that needs no interpreter begins with that one, and whoever asks for it helps with what is left. It is held
    on `lease` from then on, and only if there is room.
    """

    def __init__(self, lease: Lease) -> None:
        self._lease = lease
        self._errands = Errands()
        self._coming: tuple[Stretch, NDArray[Any], Checking] | None = None

    def read(self, wanted: Stretch, checksum: int, then: Stretch | None = None) -> tuple[NDArray[Any], int | None]:
        """These bytes in memory of their own, and their checksum; None if the file ends before.

        Any `checksum` but the one that they should have is found twice.
        """
        data, found = self._arrived(wanted)
        if data is None or found != checksum:
            # In a process that has been forked meanwhile, nobody goes on with what was begun.
            data, found = self._read(wanted)
        if then is not None and then.nbytes >= _LEAST and self._lease.ask(then.nbytes):
            self._coming = (then, *self._begin(then))
        else:
            self._lease.release()
        return data, found

    def _arrived(self, wanted: Stretch) -> tuple[NDArray[Any] | None, int | None]:
        if self._coming is None or self._coming[0] != wanted:
            self._coming = None
            return None, None
        _, data, checking = self._coming
        found = checking.wait()
        self._coming = None
        return data, found

    def _read(self, wanted: Stretch) -> tuple[NDArray[Any], int | None]:
        if wanted.nbytes >= _LEAST:
            data, checking = self._begin(wanted)
            return data, checking.wait()
        data = _room(wanted)
        return data, read_checked(wanted.file, wanted.offset, data)

    def _begin(self, stretch: Stretch) -> tuple[NDArray[Any], Checking]:
        data = _room(stretch)
        return data, self._errands.read_checked(stretch.file, stretch.offset, data)

    def stop(self) -> None:
        """Let go of what is on its way, and of the thread."""
        self._coming = None
        self._errands.stop()
        self._lease.release()


def _room(stretch: Stretch) -> NDArray[Any]:
    return aligned_empty((stretch.nbytes,), place=stretch.offset, roomy=True)
