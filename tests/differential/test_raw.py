"""decode_compressed and decode_raw beside tf.io's."""

import gzip
import zlib
from typing import Any

import numpy as np
import pytest

import forebay as fb
from differential.sides import tensorflow
from forebay.errors import DataError, PlanError

TEXT = b"etaoin shrdlu " * 500


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (zlib.compress(TEXT), "ZLIB"),
        (zlib.compress(b""), "ZLIB"),
        (gzip.compress(TEXT, mtime=0), "GZIP"),
        (gzip.compress(TEXT, mtime=0) + gzip.compress(b"more", mtime=0), "GZIP"),
        (b"", "ZLIB"),
        (b"as it is", ""),
        (b"no zlib data", "ZLIB"),
        (zlib.compress(TEXT)[:20] + b"damage" + zlib.compress(TEXT)[26:], "ZLIB"),
    ],
    ids=["zlib", "zlib nothing", "gzip", "gzip twice", "nothing", "plain", "other bytes", "damaged"],
)
def test_decode_compressed(data: bytes, kind: str) -> None:
    tf = tensorflow()
    try:
        expected = tf.io.decode_compressed(data, kind).numpy()
    except tf.errors.OpError:
        with pytest.raises(DataError, match=f"not {kind} data"):
            fb.io.decode_compressed(data, kind)
        return
    assert fb.io.decode_compressed(data, kind) == expected
    several = fb.io.decode_compressed(np.array([[data], [data]], object), kind)
    assert several.tolist() == [[expected], [expected]]


def test_incomplete_data_is_an_error() -> None:
    for data, kind in ((zlib.compress(TEXT)[:-3], "ZLIB"), (gzip.compress(TEXT, mtime=0)[:-6], "GZIP")):
        with pytest.raises(DataError, match="cut short"):
            fb.io.decode_compressed(data, kind)


def test_no_more_is_unfolded_than_allowed() -> None:
    bomb = zlib.compress(bytes(64 << 20), 9)
    assert len(bomb) < 100_000
    with pytest.raises(DataError, match="more than 1,048,576 bytes"):
        fb.io.decode_compressed(bomb, "ZLIB", max_bytes="1MiB")
    assert len(fb.io.decode_compressed(bomb, "ZLIB", max_bytes=64 << 20)) == 64 << 20


@pytest.mark.parametrize("wrong", [{"compression_type": "LZ"}, {"max_bytes": 0}])
def test_what_cannot_be_meant(wrong: Any) -> None:
    with pytest.raises(PlanError):
        fb.io.decode_compressed(b"", **wrong)
    with pytest.raises(PlanError, match="bytes or an array of bytes"):
        fb.io.decode_compressed("text", "ZLIB")


NUMBERS = ["uint8", "int16", "float32", "float64"]


# TensorFlow has no kernel for booleans of a fixed length.
@pytest.mark.parametrize(
    ("dtype", "fixed"), [(dtype, fixed) for dtype in NUMBERS for fixed in (None, 16, 64)] + [("bool", None)]
)
@pytest.mark.parametrize("little", [True, False])
@pytest.mark.parametrize("data", [b"", bytes(range(24)), [b"01234567", b"abcdefgh"], [b"01234567", b"abc"], b"odd"])
def test_decode_raw(data: Any, dtype: str, little: bool, fixed: int | None) -> None:
    tf = tensorflow()
    try:
        expected = tf.io.decode_raw(tf.constant(data), dtype, little_endian=little, fixed_length=fixed).numpy()
    except tf.errors.OpError:
        with pytest.raises(DataError):
            fb.io.decode_raw(data, dtype, little, fixed)
        return
    found = fb.io.decode_raw(data, dtype, little, fixed)
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    np.testing.assert_array_equal(found.view(np.uint8), expected.view(np.uint8))
