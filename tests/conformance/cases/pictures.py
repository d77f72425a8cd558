"""Folders of images, and what decodes them."""

from __future__ import annotations

import atexit
import tempfile
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import forebay as fb
from conformance.case import Case
from conformance.cases.common import slices
from conformance.cases.laws import reordered
from images import encoded, jpeg, picture

_folder = tempfile.TemporaryDirectory(prefix="forebay-conformance-")
atexit.register(_folder.cleanup)

COUNT = 14
BROKEN = {3, 9}


@cache
def folder(broken: bool = False) -> Path:
    """Images of several formats and sizes in two folders, some of them broken if that is asked for."""
    root = Path(_folder.name) / ("broken" if broken else "good")
    for number in range(COUNT):
        form = "PNG" if number % 3 == 1 else "JPEG"
        path = root / f"class{number * 2 // COUNT}" / f"{number:02}.{form.lower()}"
        path.parent.mkdir(parents=True, exist_ok=True)
        data = encoded(picture(9 + number, 20, number), form)
        path.write_bytes(data[: len(data) // 2] if broken and number in BROKEN else data)
    return root


def images(broken: bool = False, **how: Any) -> fb.Dataset[Any]:
    return fb.Dataset.from_images(folder(broken), **({"num_parallel_calls": None} | how))


def expected(left_out: Collection[int] = (), size: tuple[int, int] | None = None) -> list[Any]:
    made = []
    for number, path in enumerate(sorted(folder().rglob("*.*"))):
        data = path.read_bytes()
        image = fb.io.decode_image(data) if size is None else fb.image.decode_and_resize(data, size)
        if number not in left_out:
            made.append((image, np.int64(number * 2 // COUNT)))
    return made


def _jpegs() -> list[bytes]:
    return [jpeg(20, 30, seed) for seed in range(6)]


CASES = [
    Case("images.own_size", lambda: images(), lambda: expected()),
    Case("images.sized", lambda: images(size=(6, 7)), lambda: expected(size=(6, 7))),
    Case(
        "images.shuffle",
        lambda: images(size=(6, 7)).shuffle(seed=3).map(lambda image, label: int(image.sum())),
        law=lambda found: reordered(sorted(int(i.sum()) for i, _ in expected(size=(6, 7))), int)(found),
        reshuffles=True,
    ),
    Case(
        "images.skip",
        lambda: images(True, size=(6, 7), on_error="skip"),
        lambda: expected(BROKEN, (6, 7)),
        unknown_length=True,
    ),
    Case(
        "images.skip_own_size",
        lambda: images(True, on_error="skip"),
        lambda: expected(BROKEN),
        unknown_length=True,
    ),
    Case(
        "images.too_many_broken",
        lambda: images(True, on_error="skip", max_errors=1),
        lambda: [each for number, each in enumerate(expected()) if number < 9 and number != 3],
        raises=fb.FileError,
        unknown_length=True,
    ),
    Case(
        "images.broken",
        lambda: images(True, size=(6, 7)),
        lambda: expected(size=(6, 7))[:3],
        raises=fb.FileError,
    ),
    Case(
        "images.decode_and_resize",
        lambda: slices(_jpegs()).map(fb.image.DecodeAndResize((5, 4))).batch(4),
        lambda: [
            np.stack([fb.image.decode_and_resize(data, (5, 4)) for data in _jpegs()[at : at + 4]]) for at in (0, 4)
        ],
    ),
]
