"""Folders of images, in a folder for each class or not."""

import os
from collections import Counter
from typing import Any

import numpy as np

import forebay as fb
from forebay.errors import DataError, FileError
from forebay.formats.format import Facts, Files, Format, Reading
from forebay.formats.head import Head
from forebay.io.image_header import MAX_PIXELS, ImageHeader, image_header
from forebay.sources.images import IMAGE_ENDINGS
from forebay.storage.files import is_url

_BEGINNINGS = (b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF87a", b"GIF89a")
_LOOKED_AT = 100
_SHOWN_CLASSES = 20
_ANY_SIZE = 1 << 62


def _begins(head: Head) -> bool:
    data = head.data
    bitmap = data[:2] == b"BM" and head.size == int.from_bytes(data[2:6], "little")
    return data.startswith(_BEGINNINGS) or bitmap or (data[:4] == b"RIFF" and data[8:12] == b"WEBP")


def _labels(files: Files) -> list[str]:
    """The class of each image: the folder below the root; "" for those that lie in the root itself."""
    root = _tidy(files.head.path).rstrip("/") + "/"
    return [_tidy(path).removeprefix(root).rpartition("/")[0].partition("/")[0] for path in files.paths]


def _tidy(path: str) -> str:
    """Without a ``./``, which only one of two paths may begin with."""
    return path if is_url(path) else os.path.normpath(path)


def _by_folders(files: Files) -> bool:
    return all(_labels(files))


def _open(files: Files, reading: Reading) -> "fb.Dataset[Any]":
    labels = "folders" if _by_folders(files) else None
    images = fb.Dataset.from_images(files.head.path, labels, **reading.faults)
    if reading.rows is None:
        return images
    # Of the paths: images are decoded ahead, and what is wrong with those behind would be told or not, by chance.
    first = fb.Dataset[Any](images.plan.inputs[0]).take(reading.rows)
    return fb.Dataset(images.plan.with_inputs(first.plan))


def _convert(files: Files, reading: Reading) -> "fb.Dataset[Any]":
    """The images as they are stored, beside number and name of their class: nothing is decoded and encoded again."""
    rows: dict[str, Any] = {"image": np.array(files.paths, object)}
    if _by_folders(files):
        # In the order and with the numbers that ``from_images`` gives them.
        named = sorted(zip(_labels(files), files.paths))
        number = {name: i for i, name in enumerate(sorted({label for label, _ in named}))}
        rows = {
            "image": np.array([path for _, path in named], object),
            "label": np.array([number[label] for label, _ in named], np.int64),
            "class_name": np.array([label for label, _ in named], object),
        }
    return fb.Dataset.from_tensor_slices(rows).map(_with_contents, **reading.faults)


def _with_contents(row: dict[str, Any]) -> dict[str, Any]:
    # Whoever reads the target could not tell which file it was that holds no image, or not all of it.
    data, _ = _read(row["image"], _ANY_SIZE)
    return row | {"image": data}


def _read(path: str, max_pixels: int) -> tuple[bytes, ImageHeader]:
    data = fb.io.read_file(path)
    try:
        return data, image_header("read", data, max_pixels)
    except DataError as error:
        raise FileError(path, str(error).partition("(): ")[2]) from error


def _facts(files: Files) -> Facts:
    """How many there are of each class, and how large the first ones are."""
    said: dict[str, str] = {}
    if _by_folders(files):
        counts = Counter(_labels(files))
        shown = [f"{name} {count:,}" for name, count in sorted(counts.items())[:_SHOWN_CLASSES]]
        more = f", {len(counts) - len(shown):,} more" if len(counts) > len(shown) else ""
        said["classes"] = f"{len(counts):,}: {', '.join(shown)}{more}"
    headers, faults = [], []
    for path in files.paths[:_LOOKED_AT]:
        try:
            headers.append(_read(path, MAX_PIXELS)[1])
        except FileError as error:
            faults.append(error)
    if headers:
        said["kinds"] = ", ".join(f"{kind} {count}" for kind, count in Counter(h.kind for h in headers).most_common())
        widths, heights = [h.width for h in headers], [h.height for h in headers]
        said["width"] = _range(widths)
        said["height"] = _range(heights)
        if len(files.paths) > len(headers):
            said["kinds"] += f" (of the first {min(_LOOKED_AT, len(files.paths))})"
    return Facts(len(files.paths), said, tuple(faults))


def _range(sizes: list[int]) -> str:
    return f"{min(sizes)}" if min(sizes) == max(sizes) else f"{min(sizes)} to {max(sizes)}"


def _code(files: Files) -> str:
    labels = ", labels='folders'" if _by_folders(files) else ", labels=None"
    return f"fb.Dataset.from_images({files.head.path!r}{labels})"


def _image_facts(files: Files) -> Facts:
    header = image_header("inspect", fb.io.read_file(files.paths[0]), MAX_PIXELS)
    return Facts(None, {"image": f"{header.kind}, {header.width} x {header.height}, {header.channels} channels"})


IMAGES = Format(
    name="images",
    title="folder of images",
    folder=True,
    open=_open,
    code=_code,
    by_number=lambda files: "yes, by path",
    facts=_facts,
    look_rows=16,
    convert=_convert,
)

IMAGE = Format(
    name="image",
    title="image",
    endings=IMAGE_ENDINGS,
    begins=_begins,
    facts=_image_facts,
    advice="fb.Dataset.from_images reads a folder of images, fb.io.decode_image the bytes of one",
)


def is_image(path: str) -> bool:
    """By its name, as ``from_images`` tells."""
    return os.path.basename(path).lower().endswith(IMAGE_ENDINGS)
