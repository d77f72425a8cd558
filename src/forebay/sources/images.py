"""Image files by path: found in a folder, and read and decoded as a function for ``map``.

The rows are paths, so that all of them can be read by number: shuffling, skipping and sharding move paths, and only
what comes out is read and decoded, on whichever worker is free.
"""

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.errors import DataError, FileError, PlanError
from forebay.image.decode_and_resize import DecodeAndResize
from forebay.io.column_function import FillsArray
from forebay.io.decode import image_pixels
from forebay.io.image_header import image_header
from forebay.io.read_file import read_file
from forebay.remote_run import check_allowed
from forebay.storage.files import file_error, is_url
from forebay.storage.listing import found_below

IMAGE_ENDINGS = (".jpg", ".jpeg", ".png", ".gif", ".bmp", ".webp")

Image = NDArray[Any]


def find_images(folder: str) -> tuple[str, list[str]]:
    """The folder as paths begin with it, and the images anywhere below it, in the order of their names."""
    check_allowed(folder)
    if is_url(folder) and not folder.startswith("file://"):
        root, names = _remote(folder)
    else:
        root = folder.removeprefix("file://")
        names = _local(root)
    found = sorted(name for name in names if name.lower().endswith(IMAGE_ENDINGS))
    if not found:
        raise PlanError(f"from_images({folder!r}): no files that end with {', '.join(IMAGE_ENDINGS)}")
    return root, found


def _local(root: str) -> list[str]:
    if not os.path.lexists(root):
        raise FileError(root, "there is no such folder")
    names = []

    def fail(error: OSError) -> None:
        raise file_error(error.filename or root, error) from error

    for base, _, files in os.walk(root, onerror=fail, followlinks=True):
        below = os.path.relpath(base, root)
        names += files if below == "." else [f"{below}/{name}" for name in files]
    return names


def _remote(folder: str) -> tuple[str, list[str]]:
    path, names = found_below(folder)
    return folder.rstrip("/"), [name[len(path) :].lstrip("/") for name in names]


class LoadImage(FillsArray):
    """Replaces the path that an element begins with by the image there. FileError names the file that is broken."""

    text = True

    def __init__(self, root: str, channels: int, max_pixels: int, decode: DecodeAndResize | None) -> None:
        self.root = root
        self.channels = channels
        self.max_pixels = max_pixels
        self.decode = decode
        self.equal_by = "give from_images a size" if decode is None else None
        self.shape = None if decode is None else decode.shape
        self.dtype = np.dtype(np.uint8) if decode is None else decode.dtype

    def forebay_fingerprint(self) -> Iterator[Any]:
        """What is done to images, not where they lie: a folder may be elsewhere on the next machine."""
        yield from (self.channels, self.max_pixels, self.decode)

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
