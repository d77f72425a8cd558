"""Files that are written: by path or URL, plain or compressed, under their name only when they are whole."""

import contextlib
import os
import zlib
from typing import IO, Any

from forebay.errors import FileError, PlanError
from forebay.full_disk import is_full, not_written
from forebay.remote_run import check_allowed
from forebay.storage.connect import connect
from forebay.storage.inflate import WBITS
from forebay.storage.input_file import file_error, is_url
from forebay.storage.unnamed import Unnamed

# What is kept of an object until there is enough to be sent; libraries keep more by themselves.
_PART = 8 << 20


def check_folder_of(path: str) -> None:
    """FileError if a local path lies in no folder: the system only says that something is not there."""
    path = path.removeprefix("file://")
    folder = os.path.dirname(path)
    if folder and not is_url(path) and not os.path.isdir(folder):
        raise FileError(path, f"there is no folder {folder}; make it first, or name another")


def _not_written(path: str, error: Exception) -> FileError:
    if isinstance(error, OSError) and is_full(error) and not is_url(path):
        return FileError(path, not_written(error, path))
    return file_error(path, error)


class OutputFile:
    """Bytes into a file. With `atomic`, the file has another name until ``close``, and ``discard`` leaves nothing."""

    def __init__(self, path: str, compression: str | None = None, level: int = -1, atomic: bool = False) -> None:
        self.path = path.removeprefix("file://")
        self._compressor: Any = None
        if compression is not None:
            self._compressor = zlib.compressobj(level, zlib.DEFLATED, WBITS[compression])
        self._remote = is_url(self.path)
        # Objects in a store appear when they are complete, whatever they are called.
        self._temporary = self.path
        self._unnamed: Unnamed | None = None
        self._kept = not atomic
        check_allowed(path)
        self._file: IO[bytes] | None = self._open_remote() if self._remote else self._open_local()

    def _open_local(self) -> IO[bytes]:
        check_folder_of(self.path)
        try:
            if not self._kept:
                self._unnamed = Unnamed(self.path)
                self._temporary = self._unnamed.path
            return open(self._temporary, "wb")
        except (OSError, ValueError) as error:
            self._release()
            raise _not_written(self.path, error) from error

    def _open_remote(self) -> IO[bytes]:
        self._system, self._name = connect(self.path)
        try:
            file: IO[bytes] = self._system.open(self._name, "wb", block_size=_PART)
            return file
        except NotImplementedError as error:
            raise PlanError(
                f"{self.path}: files cannot be written there, only read: write to a local path, and copy it"
            ) from error
        except Exception as error:
            # File systems raise what their libraries raise.
            raise _not_written(self.path, error) from error

    @property
    def temporary(self) -> str | None:
        """Where a local file is until it has its name; None for others."""
        return None if self._remote else self._temporary

    @property
    def closed(self) -> bool:
        """Whether nothing more can be written."""
        return self._file is None

    def write(self, data: Any) -> None:
        """Anything that is made of bytes."""
        if self._file is None:
            raise FileError(self.path, "is closed")
        try:
            self._file.write(data if self._compressor is None else self._compressor.compress(data))
        except Exception as error:
            raise _not_written(self.path, error) from error

    def flush(self) -> None:
        """Have everything so far in the file, where others can read it."""
        if self._file is None:
            raise FileError(self.path, "is closed")
        try:
            if self._compressor is not None:
                self._file.write(self._compressor.flush(zlib.Z_SYNC_FLUSH))
            self._file.flush()
        except Exception as error:
            raise _not_written(self.path, error) from error

    def finish(self) -> None:
        """Write what is left, under the temporary name still."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            with file:
                if self._compressor is not None:
                    file.write(self._compressor.flush())
        except Exception as error:
            raise _not_written(self.path, error) from error

    def close(self) -> None:
        """Finish it and give it its name."""
        self.finish()
        if self._temporary != self.path and os.path.exists(self._temporary):
            try:
                os.replace(self._temporary, self.path)
            except OSError as error:
                raise _not_written(self.path, error) from error
        self._kept = True
        self._release()

    def discard(self) -> None:
        """Leave nothing under either name, unless it has its name already."""
        file, self._file = self._file, None
        if self._remote:
            self._discard_remote(file)
            return
        with contextlib.suppress(OSError):
            if file is not None:
                file.close()
            if self._temporary != self.path:
                os.unlink(self._temporary)
        self._release()

    def _release(self) -> None:
        if self._unnamed is not None:
            self._unnamed.release()

    def _discard_remote(self, file: Any) -> None:
        # Whatever is wrong with the store by now, another error is on its way already.
        with contextlib.suppress(Exception):
            if file is not None:
                # Closing it would complete it.
                file.discard()
                file.closed = True
            elif not self._kept:
                self._system.rm_file(self._name)
