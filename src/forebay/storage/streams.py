"""The contents of a file in order, plain or compressed, and the window through which they are looked at."""

import sys
import zlib
from abc import ABC, abstractmethod

import numpy as np

from forebay.errors import FileError, PlanError
from forebay.ledger import Lease
from forebay.storage.files import Bytes, InputFile

COMPRESSIONS = ("GZIP", "ZLIB")
# Of the compressed bytes. What they unfold to is asked for as it is needed, however much it may be.
_COMPRESSED_PIECE = 1 << 18
# So many buffers are remembered to be used again: blocks are looked at for a moment, and one of them is being made.
_SPARE = 4
_WBITS = {"GZIP": 31, "ZLIB": 15}


class Stream(ABC):
    """Bytes from `position` on."""

    position = 0

    @property
    @abstractmethod
    def left(self) -> int | None:
        """How many bytes are to come; None if only reading tells."""

    @abstractmethod
    def read(self, into: Bytes) -> int:
        """Fill `into`; how many bytes there were: fewer only at the end."""

    @abstractmethod
    def skip(self, count: int) -> None:
        """Go so many bytes on, or to the end."""


def open_stream(file: InputFile, compression: str | None, position: int = 0) -> Stream:
    """The contents from a position on. What is compressed has to be unfolded from the start up to there."""
    stream = _Plain(file, position) if compression is None else _Inflated(file, compression, position)
    if (stream.left or 0) < 0 or stream.position != position:
        raise FileError(file.path, "has become shorter since the state to resume from was saved", position)
    return stream


def compression_of(call: str, value: object) -> str | None:
    """The compression that a user means, in tf.data's terms."""
    if value in (None, "", "NONE"):
        return None
    if value in COMPRESSIONS:
        return str(value)
    raise PlanError(f"{call}(compression_type={value!r}): it must be None, '', 'GZIP' or 'ZLIB'")


class _Plain(Stream):
    def __init__(self, file: InputFile, position: int) -> None:
        self._file = file
        self.position = position

    @property
    def left(self) -> int:
        """The rest of the file."""
        return self._file.size - self.position

    def read(self, into: Bytes) -> int:
        """Just that."""
        got = self._file.read_at(self.position, into)
        self.position += got
        return got

    def skip(self, count: int) -> None:
        """Without reading."""
        self.position = min(self.position + count, self._file.size)


class _Inflated(Stream):
    """Members of a gzip file follow one another; so may several zlib streams."""

    def __init__(self, file: InputFile, compression: str, position: int) -> None:
        self._file = file
        self._bits = _WBITS[compression]
        self._at = 0  # In the file, of the compressed bytes that have not been read.
        self._piece = np.empty(min(_COMPRESSED_PIECE, max(file.size, 1)), np.uint8)
        self._waiting = b""  # Compressed bytes that have been read and not used.
        self._member: zlib._Decompress | None = None
        self.skip(position)

    @property
    def left(self) -> int | None:
        """Nobody knows."""
        return None

    def read(self, into: Bytes) -> int:
        """No more is unfolded than there is room for."""
        done = 0
        try:
            while done < len(into):
                data = self._unfold(len(into) - done)
                if data is None:
                    break
                into[done : done + len(data)] = np.frombuffer(data, np.uint8)
                done += len(data)
        except FileError:
            # What came before it is good; whoever asks for more is told.
            if not done:
                raise
        self.position += done
        return done

    def skip(self, count: int) -> None:
        """What is passed over is unfolded all the same."""
        scratch = np.empty(min(_COMPRESSED_PIECE, count), np.uint8)
        stop = self.position + count
        while self.position < stop and self.read(scratch[: stop - self.position]):
            pass

    def _unfold(self, most: int) -> bytes | None:
        """Up to so many of the next bytes, perhaps none; None at the end."""
        if not self._waiting and self._member is not None:
            # All of its input may be used up, and not all of its output given out.
            data = self._inflate(most)
            if data or self._member is None:
                return data
        if not self._waiting:
            got = self._file.read_at(self._at, self._piece)
            self._at += got
            self._waiting = self._piece[:got].tobytes()
        if not self._waiting:
            if self._member is not None:
                raise FileError(self._file.path, "ends in the middle of its compressed data", self._at)
            return None
        return self._inflate(most)

    def _inflate(self, most: int) -> bytes:
        member = self._member = self._member or zlib.decompressobj(self._bits)
        try:
            data = member.decompress(self._waiting, most)
        except zlib.error as error:
            raise FileError(self._file.path, f"its compressed data is damaged ({error})", self._at) from error
        self._waiting = member.unconsumed_tail
        if member.eof:
            self._waiting, self._member = member.unused_data, None
        return data


class Window:
    """The part of a stream that is being looked at: `data` begins at byte `position` of the contents.

    It grows to what has to be seen at once, as far as the budget allows.
    """

    def __init__(self, stream: Stream, path: str, lease: Lease, piece: int, most: int) -> None:
        self._stream = stream
        self._path = path
        self._lease = lease
        self._piece = piece
        self._most = most
        self._buffer = np.empty(0, np.uint8)
        self._start = self._end = 0
        self._ended = False
        self._lent = False
        self._spare: list[Bytes] = []  # Lent, and perhaps still in use.

    @property
    def position(self) -> int:
        """Of the first byte in the contents."""
        return self._stream.position - (self._end - self._start)

    @property
    def data(self) -> Bytes:
        """What is at hand, to be used before the window is filled again."""
        return self._buffer[self._start : self._end]

    def lend(self) -> Bytes:
        """The same for good: the window goes on in other memory."""
        self._lent = True
        return self.data

    @property
    def size(self) -> int:
        """How many bytes are at hand."""
        return self._end - self._start

    @property
    def left(self) -> int | None:
        """How many bytes there are from the window's first one on, if that is known."""
        rest = self._stream.left
        return None if rest is None else rest + self.size

    def move(self, count: int) -> None:
        """Go so many bytes on, also beyond what is at hand."""
        beyond = count - self.size
        self._start = min(self._start + count, self._end)
        if beyond > 0:
            self._stream.skip(beyond)

    def fill(self, least: int = 1) -> int:
        """Have at least so many bytes at hand, if there are as many, and as many more as one read gives.

        Returns how many there are. FileError if the budget has no room for them.
        """
        if self.size >= least or self._ended:
            return self.size
        known = self.left
        if known is not None:
            least = min(least, known)
        if least > self._most:
            raise FileError(
                self._path,
                f"{least:,} bytes have to be read at once, and the budget is {self._most:,} (Options.memory)",
                self.position,
            )
        while self.size < least and not self._ended:
            # A stream that may be endless is believed piece by piece.
            room = least if known is not None else min(least, max(2 * self.size, self._piece))
            self._make_room(room)
            # Not more than that: what is left over is copied when the window moves on.
            got = self._stream.read(self._buffer[self._end : max(room, self._piece)])
            self._end += got
            self._ended = not got
        return self.size

    def _make_room(self, least: int) -> None:
        size = max(least, self._piece)
        if size > len(self._buffer) or self._lent:
            # The old buffer is still there while the new one is filled.
            self._lease.note(size + self.size)
            other = self._spare_buffer(size)
            other[: self.size] = self.data
            self._lease.note(len(other))
            self._buffer = other
            self._lent = False
        elif self._start:
            self._buffer[: self.size] = self.data
        self._end -= self._start
        self._start = 0

    def _spare_buffer(self, size: int) -> Bytes:
        """One that was lent and has come back, or a new one: memory that is used again need not be cleared first."""
        if self._lent:
            self._spare.append(self._buffer)
            del self._spare[:-_SPARE]
        for place in range(len(self._spare)):
            # Referred to by the list and by the call, and so by nobody who could still look at it: views refer to the
            # array that owns their memory, which these do (those of ``aligned_empty`` do not).
            if len(self._spare[place]) >= size and sys.getrefcount(self._spare[place]) == 2:
                return self._spare.pop(place)
        return np.empty(size + size // 16, np.uint8)

    def close(self) -> None:
        """Let go of the memory."""
        self._buffer = np.empty(0, np.uint8)
        self._spare.clear()
        self._start = self._end = 0
        self._lease.release()
