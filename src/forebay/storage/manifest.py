"""The manifest: what a saved dataset holds, file by file and batch by batch, with checksums of every byte."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from forebay.block import Indices, Structure
from forebay.digests import blake2b
from forebay.errors import DataError, PlanError
from forebay.lazy import cached_property
from forebay.storage.leaf import Leaf
from forebay.storage.structures import structure_from_json

# 2: checksums are CRC-32C; those of version 1 were XXH3.
VERSION = 2
# Names that begin with an underscore are passed over by those who read a folder of Arrow files.
MANIFEST = "_forebay.json"


@dataclass(frozen=True)
class FileInfo:
    """One Arrow file: the rows of its record batches, where each ends in the file, and checksums.

    The first batch begins at `head`. `frame` is the checksum of what stands before the first batch and after the last.
    """

    name: str
    shard: int
    size: int
    head: int
    frame: str
    batch_rows: list[int]
    batch_ends: list[int]
    checksums: list[str]

    @property
    def rows(self) -> int:
        """All rows in it."""
        return sum(self.batch_rows)

    def span(self, batch: int) -> tuple[int, int]:
        """Where a batch begins and ends."""
        return (self.batch_ends[batch - 1] if batch else self.head), self.batch_ends[batch]


@dataclass(frozen=True)
class Manifest:
    """A whole saved dataset. `structure` is None if it was saved without an element to tell it by.

    `plan` is a key of the plan that the rows come from, and `made_of` a text about that.
    """

    id: str
    structure: Any
    leaves: tuple[Leaf, ...]
    compression: str | None
    plan: str
    files: tuple[FileInfo, ...]
    known: bool = True
    made_of: str | None = None
    given: Structure | None = field(default=None, compare=False)

    @cached_property
    def elements(self) -> Structure:
        """The structure of elements. PlanError if a class of it cannot be found."""
        return self.given or structure_from_json(self.structure)

    @property
    def rows(self) -> int:
        """All rows of all files."""
        return sum(file.rows for file in self.files)

    @property
    def shards(self) -> list[int]:
        """The shards' numbers, in order."""
        return sorted({file.shard for file in self.files})

    def shard_lengths(self) -> list[int]:
        """Rows of each shard."""
        return [sum(file.rows for file in self.files if file.shard == shard) for shard in self.shards]

    def only(self, shard: int) -> "Manifest":
        """The same with the files of one shard."""
        return replace(self, files=tuple(file for file in self.files if file.shard == shard))

    def batches(self) -> tuple[Indices, Indices, Indices]:
        """For each batch of all files: the first of its rows, its file, its number there. One entry more of rows."""
        rows = [rows for file in self.files for rows in file.batch_rows]
        owner = [i for i, file in enumerate(self.files) for _ in file.batch_rows]
        number = [i for file in self.files for i in range(len(file.batch_rows))]
        return np.cumsum([0, *rows], dtype=np.int64), np.array(owner, np.int64), np.array(number, np.int64)

    def to_json(self) -> dict[str, Any]:
        """What is written, without the checksum."""
        return {
            "forebay_dataset": VERSION,
            "id": self.id,
            "rows": self.rows,
            "compression": self.compression,
            "plan": self.plan,
            "known": self.known,
            "structure": self.structure,
            "columns": [leaf.to_json() for leaf in self.leaves],
            "files": [vars(file) for file in self.files],
            **({} if self.made_of is None else {"made_of": self.made_of}),
        }


def write_manifest(folder: str, manifest: Manifest) -> None:
    """Write the manifest and see it on the disk."""
    text = json.dumps({**manifest.to_json(), "checksum": _checksum(manifest.to_json())}, indent=1)
    with open(os.path.join(folder, MANIFEST), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def is_saved_dataset(path: str) -> bool:
    """Whether there is a saved dataset, of whatever version and in whatever state."""
    return os.path.exists(os.path.join(path, MANIFEST))


def read_manifest(path: str, call: str) -> Manifest:
    """The manifest of a saved dataset, after a look at whether all its files are there."""
    name = os.path.join(path, MANIFEST)
    try:
        with open(name, "rb") as file:
            text = file.read()
    except FileNotFoundError:
        what = "a folder without" if os.path.isdir(path) else "not a folder with"
        raise PlanError(f"{call}({path!r}): there is no saved dataset, this is {what} a {MANIFEST}") from None
    except NotADirectoryError:
        raise PlanError(
            f"{call}({path!r}): this is a file, not a folder that save() wrote; from_parquet(), from_arrow() and the "
            "others read files, and `forebay inspect` tells which"
        ) from None
    except OSError as error:
        raise DataError(f"{name} cannot be read: {error}") from error
    manifest = _parsed(name, text, call)
    for info in manifest.files:
        if os.path.basename(info.name) != info.name:
            raise DataError(f"{name} names a file outside its folder: {info.name}")
        check_size(os.path.join(path, info.name), info, os.stat)
    return manifest


def check_size(path: str, info: FileInfo, stat: Callable[[Any], os.stat_result], file: Any = None) -> None:
    """DataError if a file is missing or shorter or longer than it was."""
    try:
        size = stat(path if file is None else file).st_size
    except FileNotFoundError:
        raise DataError(f"{path} is missing: the saved dataset is not complete, or was replaced since") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if size != info.size:
        raise DataError(f"{path} has {size} bytes and was saved with {info.size}: it was cut short or replaced")


def _parsed(name: str, text: bytes, call: str) -> Manifest:
    try:
        value = json.loads(text)
        version = value["forebay_dataset"]
        if isinstance(version, int) and version > VERSION:
            raise PlanError(
                f"{call}(): {name} has version {version}, written by a newer Forebay; this one reads version {VERSION}"
            )
        if isinstance(version, int) and version < VERSION:
            raise PlanError(
                f"{call}(): {name} has version {version}, written by an older Forebay whose checksums this one does "
                f"not know; it reads version {VERSION}: save the dataset again, or delete a snapshot"
            )
        claimed = value.pop("checksum")
        if claimed != _checksum(value):
            raise DataError(f"{name} is damaged: its checksum is not what it was saved with")
        return Manifest(
            id=value["id"],
            structure=value["structure"],
            leaves=tuple(Leaf.from_json(leaf) for leaf in value["columns"]),
            compression=value["compression"],
            plan=value["plan"],
            files=tuple(FileInfo(**file) for file in value["files"]),
            known=value["known"],
            # Earlier versions did not write it.
            made_of=value.get("made_of"),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        if isinstance(error, PlanError):
            raise
        raise DataError(f"{name} is damaged: it is not a manifest ({error!r})") from error


def _checksum(value: dict[str, Any]) -> str:
    return blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=16).hexdigest()
