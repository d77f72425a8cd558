"""The index of a cache in a folder: where its records are, and whether these are all."""

import errno
import json
import os
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forebay.run.cached_record import Record


@dataclass(frozen=True, slots=True)
class Index:
    """What is known to be whole and on the disk.

    Args:
        complete: whether there are no more rows.
        end: where the last record ends.
        records: in the order of their rows.
    """

    complete: bool
    end: int
    records: list[Record]

    @staticmethod
    def read(path: Path, key: str) -> "Index | None":
        """What a file says of the rows under that key; None if there is none, or it is damaged."""
        try:
            checksum, _, text = path.read_bytes().partition(b"\n")
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EIO):
                raise
            return None
        if checksum != b"%08x" % zlib.crc32(text):
            return None
        found: dict[str, Any] = json.loads(text)
        if found["key"] != key:
            return None
        return Index(bool(found["complete"]), found["end"], [Record.from_json(each) for each in found["records"]])

    def write(self, path: Path, key: str) -> None:
        """To a file, which is on the disk when this returns."""
        records = [record.to_json() for record in self.records]
        found = {"key": key, "complete": self.complete, "end": self.end, "records": records}
        text = json.dumps(found).encode()
        with path.open("wb") as out:
            out.write(b"%08x\n" % zlib.crc32(text) + text)
            out.flush()
            os.fsync(out.fileno())


def stamp(path: Path) -> tuple[int, int, int] | None:
    """Differs whenever a file has been replaced."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def tell_missing(data: Path, start: int, stop: int) -> None:
    """Say in the log which rows are no longer in that file of a cache."""
    # Those who have nothing to log need not wait for it.
    import logging

    logging.getLogger("forebay").warning(
        "cache(%r): elements %s to %s were there and are gone, since %s has been made shorter or deleted; they are "
        "computed again",
        *(str(data.parent), f"{start:,}", f"{stop - 1:,}", data.name),
    )
