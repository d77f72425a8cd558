"""The contents of a file in order, plain or compressed, and the window through which they are looked at."""

from abc import ABC, abstractmethod
from sys import getrefcount
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import Coming, Errands, spare_bytes
from forebay.errors import FileError, PlanError
from forebay.ledger import Lease
from forebay.storage.files import Bytes, InputFile, file_error
from forebay.storage.inflate import WBITS, InflateError, inflater, mistaken
from forebay.storage.marks import MARK

Indices = NDArray[np.int64]

_NOTHING = np.empty(0, np.uint8)
# Of the compressed bytes. What they unfold to is asked for as it is needed, however much it may be. Little, since
# hundreds of files may be open at once.
_COMPRESSED_PIECE = 1 << 15
# What they unfold to at once: it is there twice until it has been copied to where it belongs.
_UNFOLDED_PIECE = 1 << 20
# Bytes have the same place in a page of the window as in one of the file: some processors copy them from the page cache
# a lot faster that way. Only large windows begin at a page.
_PAGE = 4096
_LARGE = 1 << 16
# A buffer that had to be so many times as large as a piece is let go of once it is lent, if at most this part is left.
_OVERSIZE = 2
_REST = 4


class Stream(ABC):
    """Bytes from `position` on."""

    position = 0
    descriptor: int | None = None
    """Of a file that has the same bytes at the same places, and can be read from without this."""

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

    @abstractmethod
    def close(self) -> None:
        """Let go of the file."""


def open_stream(file: InputFile, compression: str | None, lease: Lease, position: int = 0) -> Stream:
    """The contents from a position on. What is compressed has to be unfolded from the start up to there.

    What is read ahead counts in the budget of the lease, which itself is left as it is.
    """
    source = file.in_order(lease)
    try:
        stream: Stream = _Plain(source, position)
        if compression is not None:
            stream = Inflated(source, WBITS[compression], position)
        if (stream.left or 0) < 0 or stream.position != position:
            raise FileError(file.path, "has become shorter since the state to resume from was saved", position)
    except BaseException:
        source.close()
        raise
    return stream


def compression_of(call: str, value: object) -> str | None:
    """The compression that a user means, in tf.data's terms."""
    if value in (None, "", "NONE"):
        return None
    if value in WBITS:
        return str(value)
    raise PlanError(f"{call}(compression_type={value!r}): it must be None, '', 'GZIP' or 'ZLIB'")


class _Plain(Stream):
    def __init__(self, file: InputFile, position: int) -> None:
        self._file = file
        self.position = position
        self.descriptor = file.descriptor

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

    def close(self) -> None:
        """Just that."""
        self._file.close()


class Inflated(Stream):
    """Compressed bytes of a file, unfolded from its start, or from `begin`, on: in one stream that ends at `end`, or in
    streams that follow one another, as members of a gzip file do. `bits` are what zlib knows the format by."""

    def __init__(self, file: InputFile, bits: int, position: int, begin: int = 0, end: int | None = None) -> None:
        self._file = file
        self.path = file.path
        self._bits = bits
        self._begin = begin
        self._head = b""  # The first of the compressed bytes.
        self._at = begin  # In the file, of the compressed bytes that have not been read.
        self._end = end
        self._over = False
        self._waiting = b""  # Compressed bytes that have been read and not used.
        self._member: Any = None
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
                data = self._unfold(min(len(into) - done, _UNFOLDED_PIECE))
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

    def close(self) -> None:
        """Just that."""
        self._file.close()

    def unfolded(self, data: bytes) -> None:
        """Hears of what comes out, in order."""

    def ended(self) -> None:
        """Asked at the end of a single stream whether all is well."""

    def _unfold(self, most: int) -> bytes | None:
        """Up to so many of the next bytes, perhaps none; None at the end."""
        if not self._waiting and self._member is not None:
            # All of its input may be used up, and not all of its output given out.
            data = self._inflate(most)
            if data or self._member is None:
                return data
        if self._over:
            # When all of it has been given out.
            self.ended()
            return None
        if not self._waiting:
            most_read = _COMPRESSED_PIECE if self._end is None else min(_COMPRESSED_PIECE, self._end - self._at)
            piece = np.empty(most_read, np.uint8)
            got = self._file.read_at(self._at, piece)
            self._at += got
            self._waiting = piece[:got].tobytes()
            self._head = self._head or self._waiting[:MARK]
        if not self._waiting:
            if self._member is not None or self._end is not None:
                raise self._fault("ends in the middle of its compressed data")
            return None
        return self._inflate(most)

    def _fault(self, reason: str) -> FileError:
        mistake = mistaken(self.path, self._head, self._bits)
        return FileError(self.path, reason, self._at) if mistake is None else FileError(self.path, mistake, self._begin)

    def _inflate(self, most: int) -> bytes:
        member = self._member = self._member or inflater(self._bits)
        try:
            data: bytes = member.decompress(self._waiting, most)
        except InflateError as error:
            raise self._fault(f"its compressed data is damaged ({error})") from error
        self._waiting = member.unconsumed_tail
        self.unfolded(data)
        if member.eof:
            self._waiting, self._member = member.unused_data, None
            if self._end is not None:
                self._waiting, self._over = b"", True
        return data


def _references(holder: Any) -> int:
    """How many there are to the buffer that was used before, some of which are due to the question."""
    used = holder._used
    return getrefcount(used)


# If nobody looks at it any more. How many that are is up to the interpreter.
_ALONE = _references(SimpleNamespace(_used=np.empty(0, np.uint8)))


class Window:
    """The part of a stream that is being looked at: `data` begins at byte `position` of the contents.

    It grows to what has to be seen at once, as far as the budget allows.
    """

    def __init__(self, stream: Stream, path: str, lease: Lease, piece: int, most: int) -> None:
        self._stream = stream
        self._path = path
        self._lease = lease
        self.piece = piece
        """Bytes that are read at once, unless more are needed."""
        self.most = most
        """Bytes that may be asked for at once."""
        self._buffer = _NOTHING
        self._start = self._end = 0
        self._ended = False
        self._lent = False
        self._coming: Coming | None = None  # What is being read ahead.
        self._used = _NOTHING  # The buffer before, once others have been read ahead.
        self.found = (0, 0)
        """Whole good records from the window's first byte on that came with what was read ahead, and their bytes."""

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
        self.found = (0, 0)
        self._start = min(self._start + count, self._end)
        if beyond > 0:
            self._stream.skip(beyond)
        if self._lent and len(self._buffer) > max(_OVERSIZE * self.piece, _REST * self.size):
            # Others may be waiting for their turn with one as large.
            self._buffer = self.data.copy()
            self._start, self._end, self._lent, self._used = 0, len(self._buffer), False, _NOTHING
            self._lease.note(len(self._buffer))

    def fill(self, least: int = 1) -> int:
        """Have at least so many bytes at hand, if there are as many; a whole piece if much less than that is asked for.

        Returns how many there are. FileError if the budget has no room for them.
        """
        if self._coming is not None:
            self._arrive()
        size = self._end - self._start
        if size >= least or self._ended:
            return size
        known = self.left
        if known is not None:
            least = min(least, known)
        if least > self.most:
            raise FileError(
                self._path,
                f"{least:,} bytes have to be read at once, and the budget is {self.most:,} (Options.memory)",
                self.position,
            )
        while size < least and not self._ended:
            # A stream that may be endless is believed piece by piece.
            room = self._enough(least if known is not None else min(least, max(2 * size, self.piece)))
            self._make_room(room)
            got = self._stream.read(self._buffer[self._end : self._start + room])
            self._end += got
            self._ended = not got
            size += got
        return size

    def _enough(self, least: int) -> int:
        """How much to read where so much is needed. Not more: what is left over is copied when the window moves on."""
        return max(least, self.piece) if least < max(self.piece // 2, _LARGE) else least

    def read_ahead(self, thread: Errands, least: int, starts: Indices, stops: Indices) -> None:
        """Have a thread do what ``fill`` would, and look for records in it. Only where the budget has room for that."""
        file, known = self._stream.descriptor, self.left
        if file is None or known is None or self._ended or self._coming is not None:
            return
        # A piece at most: what is larger may be so only because the rows before were.
        room, held = min(self._enough(min(least, known)), self.piece, known), self.size
        if room <= held or room > self.most or not self._lease.ask(len(self._buffer) + self._roomy(room)):
            return
        self._make_room(room, again=True)
        data = self._buffer[self._start : self._start + room]
        self._coming = thread.read(file, self._stream.position, data, held, starts, stops)

    def _arrive(self) -> None:
        assert self._coming is not None
        try:
            got, rows, used = self._coming.wait()
        except OSError as error:
            self._coming = None
            raise file_error(self._path, error, self._stream.position) from error
        self._coming = None
        self._stream.skip(got)
        self._end += got
        self._ended = not got
        self.found = rows, used

    def _roomy(self, size: int) -> int:
        """How large a buffer for so many bytes is: a piece at least, and some more, since the next may be larger."""
        room = max(size, self.piece)
        return room + room // 16 + (_PAGE if room >= _LARGE else 0)

    def _make_room(self, size: int, again: bool = False) -> None:
        """So many bytes from the window's first one on. A buffer that is lent is kept, to be used `again`."""
        held = self._end - self._start
        start = (self._stream.position - held) % _PAGE if max(size, self.piece) >= _LARGE else 0
        if start + size > len(self._buffer) or self._lent:
            # The old buffer is still there while the new one is filled.
            room = self._roomy(size)
            if len(self._used) >= start + size and _references(self) == _ALONE:
                other = self._used
            else:
                self._used = _NOTHING
                self._lease.note(room + (len(self._buffer) if again else held))
                other = spare_bytes(room)
            if held:
                other[start : start + held] = self._buffer[self._start : self._end]
            self._used = self._buffer if again and len(self._buffer) <= len(other) else _NOTHING
            self._lease.note(len(other) + len(self._used))
            self._buffer = other
            self._lent = False
        elif self._start + size > len(self._buffer):
            self._buffer[start : start + held] = self._buffer[self._start : self._end]
        else:
            return
        self._start, self._end = start, start + held

    def close(self) -> None:
        """Let go of the memory."""
        self._coming = None  # Which is waited for.
        self._buffer = self._used = _NOTHING
        self._start = self._end = 0
        self._stream.close()
        self._lease.release()
