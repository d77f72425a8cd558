"""Image files by path: found in a folder, and read and decoded as a function for ``map``.

The rows are paths, so that all of them can be read by number: shuffling, skipping and sharding move paths, and only
what comes out is read and decoded, on whichever worker is free.
"""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block import Block
from forebay.block.dense import Dense
from forebay.block.strings import Strings
from forebay.block.structure import LEAF, Structure
from forebay.errors import DataError, FileError, PlanError
from forebay.image.decode_and_resize import DecodeAndResize
from forebay.io.column_function import ColumnFunction, FillsArray
from forebay.io.decode import image_pixels
from forebay.io.image_header import image_header
from forebay.io.read_file import read_file
from forebay.storage.files import file_error, is_url

_ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp")

Image = NDArray[Any]


def find_images(folder: str) -> tuple[str, list[str]]:
    """The folder as paths begin with it, and the images anywhere below it, in the order of their names."""
    if is_url(folder) and not folder.startswith("file://"):
        root, names = _remote(folder)
    else:
        root = folder.removeprefix("file://")
        names = _local(root)
    found = sorted(name for name in names if name.lower().endswith(_ENDINGS))
    if not found:
        raise PlanError(f"from_images({folder!r}): no files that end with {', '.join(_ENDINGS)}")
    return root, found


def _local(root: str) -> list[str]:
    names = []

    def fail(error: OSError) -> None:
        raise file_error(error.filename or root, error) from error

    for base, _, files in os.walk(root, onerror=fail, followlinks=True):
        below = os.path.relpath(base, root)
        names += files if below == "." else [f"{below}/{name}" for name in files]
    return names


def _remote(folder: str) -> tuple[str, list[str]]:
    try:
        import fsspec

        system, path = fsspec.core.url_to_fs(folder)
        names: list[str] = system.find(path)
    except Exception as error:
        # File systems raise what their libraries raise.
        raise file_error(folder, error) from error
    return folder.rstrip("/"), [name[len(path) :].lstrip("/") for name in names]


class LoadImage(FillsArray):
    """Replaces the path that an element begins with by the image there. FileError names the file that is broken."""

    text = True

    def __init__(self, root: str, channels: int, max_pixels: int, decode: DecodeAndResize | None) -> None:
        self.root = root
        self.channels = channels
        self.max_pixels = max_pixels
        self.decode = decode
        self.shape = None if decode is None else decode.shape
        self.dtype = np.dtype(np.uint8) if decode is None else decode.dtype

    def make(self, value: Any, out: Any = None) -> Image:
        """The image, in `out` if that is given."""
        path = f"{self.root}/{value}"
        data = read_file(path)
        try:
            if self.decode is not None:
                return self.decode.make(data, out)
            header = image_header("from_images", data, self.max_pixels)
            return image_pixels("from_images", data, header, self.channels)
        except DataError as error:
            # What the decoder calls itself is of no use to who gave a folder.
            raise FileError(path, str(error).partition("(): ")[2] or str(error)) from error


class LoadOrFault(ColumnFunction):
    """Pairs of what went wrong, "" if nothing did, and the element; of broken images there is something in its place.

    What went wrong is told as the reason, a line's end, and the path.
    """

    def __init__(self, load: LoadImage) -> None:
        self.load = load

    def __call__(self, *element: Any) -> Any:
        """What becomes of one element."""
        try:
            made = self.load(*element)
            return "", made if len(element) == 1 else tuple(made)
        except FileError as error:
            shape = (1, 1, self.load.channels) if self.load.shape is None else self.load.shape
            empty = np.zeros(shape, self.load.dtype)
            first = element[0]
            if isinstance(first, dict):
                return _told(error), {**first, next(iter(first)): empty}
            return _told(error), empty if len(element) == 1 else (empty, *element[1:])

    def accepts(self, block: Block) -> bool:
        """Where images can be put into one array."""
        return self.load.accepts(block)

    def on_block(self, block: Block) -> tuple[Block | None, Exception | None]:
        """Row by row into one array."""
        assert self.load.shape is not None
        values = np.empty((block.rows, *self.load.shape), self.load.dtype)
        faults = []
        for row, name in enumerate(block.columns[0].rows()):
            try:
                self.load.make(name, values[row])
                faults.append("")
            except FileError as error:
                values[row] = 0
                faults.append(_told(error))
            except Exception as error:
                return (self._made(block.slice(0, row), faults, values[:row].copy()) if row else None), error
        return self._made(block, faults, values), None

    @staticmethod
    def _made(block: Block, faults: list[str], values: Image) -> Block:
        structure = Structure(tuple, (), (LEAF, block.structure))
        columns = [Strings.of(faults, (), True), Dense(values), *block.columns[1:]]
        return Block(structure, columns, block.rows)


def _told(error: FileError) -> str:
    return f"{error.reason.replace(chr(10), ' ')}\n{error.path}"
