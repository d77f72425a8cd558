"""Damaged JPEG images beside TensorFlow's decoder: what it refuses is refused, and nothing shows what was in memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import forebay as fb
from differential.sides import tensorflow
from forebay.io.image_header import image_header
from forebay.io.jpeg import jpeg_pixels
from images import encoded, picture

KINDS = {
    f"{mode}, {'progressive' if progressive else 'baseline'}": (mode, progressive)
    for mode in ("RGB", "L", "CMYK")
    for progressive in (False, True)
}
MUTANTS = 500
MOST = 1 << 20


def _image(kind: str, height: int = 20, width: int = 28) -> bytes:
    mode, progressive = KINDS[kind]
    return encoded(picture(height, width), "JPEG", mode, quality=80, progressive=progressive)


def _they_accept(data: bytes) -> Any:
    """What TensorFlow makes of the image; None if it refuses it."""
    tf = tensorflow()
    try:
        return tf.io.decode_jpeg(data, channels=3).numpy()
    except tf.errors.InvalidArgumentError:
        return None


def _decoded(data: bytes, fill: int, recover: bool = False) -> Any:
    """The image by way of memory that is filled with something; None if it is refused."""
    try:
        header = image_header("test", data, MOST)
        memory = np.full(header.height * header.width * max(header.channels, 3), fill, np.uint8)
        return jpeg_pixels("test", data, header, 3, buffer=memory, recover=recover).copy()
    except fb.DataError:
        return None


def _resized(data: bytes, exact: bool) -> bool:
    try:
        fb.image.decode_and_resize(data, (5, 7), max_pixels=MOST, exact=exact)
    except fb.DataError:
        return False
    return True


def _is_accepted(data: bytes, same_pixels: bool) -> bool:
    ours, again = (_decoded(data, fill) for fill in (0, 255))
    small = _resized(data, exact=False)
    assert _resized(data, exact=True) == (ours is not None) == (again is not None)
    if ours is None and not small:
        return False
    theirs = _they_accept(data)
    assert theirs is not None
    if ours is not None:
        np.testing.assert_array_equal(ours, again)
        np.testing.assert_array_equal(fb.io.decode_image(data, 3), ours)
        if same_pixels:
            np.testing.assert_array_equal(ours, theirs)
    return True


@pytest.mark.parametrize("kind", KINDS)
def test_no_image_that_is_cut_short_is_accepted(kind: str) -> None:
    whole = _image(kind)
    assert _is_accepted(whole, same_pixels=True)
    assert not any(_is_accepted(whole[:n], same_pixels=True) for n in range(len(whole)))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_recovered_of_an_image_is_its_own(kind: str) -> None:
    whole = _image(kind)
    recovered = 0
    for n in range(len(whole)):
        ours, again = (_decoded(whole[:n], fill, recover=True) for fill in (0, 255))
        assert (ours is None) == (again is None)
        if ours is not None:
            np.testing.assert_array_equal(ours, again)
            recovered += 1
    assert recovered > len(whole) // 8


ODD = {
    "bytes between segments": lambda data, at: data[:at] + b"\x12\x34\xff\x00" + data[at:],
    "marks filled up": lambda data, at: data[:at] + b"\xff\xff" + data[at:],
    "another revision": lambda data, at: data.replace(b"JFIF\0\1", b"JFIF\0\7"),
    "an unknown transform": lambda data, at: data.replace(b"Adobe\0\x64\0\0\0\0\0", b"Adobe\0\x64\0\0\0\0\x09"),
    "bytes behind the pixels": lambda data, at: data[:-2] + b"\x12" + data[-2:],
    "bytes behind the end": lambda data, at: data + b"\xff\xda\x12",
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("odd", ODD)
def test_oddities_that_tensorflow_passes_over_are_passed_over(kind: str, odd: str) -> None:
    whole = _image(kind)
    assert _is_accepted(ODD[odd](whole, whole.index(b"\xff\xdb")), same_pixels=True)
    cut = ODD[odd](whole, whole.index(b"\xff\xdb"))[: len(whole) // 2]
    assert not _is_accepted(cut, same_pixels=True)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_images_are_what_tensorflow_makes_of_them(kind: str) -> None:
    whole = _image(kind)
    # What is guessed of a progressive image that lacks a scan is not the same in all versions of libjpeg-turbo.
    same_pixels = not KINDS[kind][1]
    rng = np.random.default_rng(len(kind))
    accepted = 0
    for _ in range(MUTANTS):
        data = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            data[rng.integers(2, len(data))] = rng.integers(0, 256)
        if rng.random() < 0.1:
            del data[rng.integers(2, len(data)) :]
        accepted += _is_accepted(bytes(data), same_pixels)
    assert accepted > MUTANTS // 20
