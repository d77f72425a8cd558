"""What there is to say of a disk that takes no more."""

import errno
import os

_WHY = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "no file may become that large there",
}


def is_full(error: OSError) -> bool:
    """Whether a write was refused for want of room, so that others may succeed once there is some."""
    return error.errno in _WHY


def refusal(error: OSError) -> str:
    """Why a write was refused: in words, or as the system said it, with the path."""
    if error.errno in _WHY:
        return _WHY[error.errno]
    return f"{error.strerror} ({error.filename})" if error.filename else str(error)


def room(path: "str | os.PathLike[str]") -> str:
    """How much is free on the disk that a path is on, or would be if it were made."""
    folder = os.path.abspath(path)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    try:
        found = os.statvfs(folder)
    except OSError:
        return f"how much is free in {folder!r} cannot be told"
    free, total = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    return f"{free:,} of {total:,} bytes are free in {folder!r}"


def not_written(error: OSError, path: "str | os.PathLike[str]") -> str:
    """Why a user's file could not be written, and for want of room how much there is and what to do."""
    if not is_full(error):
        return refusal(error)
    return f"{refusal(error)}; {room(path)}. Make room there, or write to a larger disk"
