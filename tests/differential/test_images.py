"""Images beside TensorFlow's: decoders exactly, sizes to single precision."""

from __future__ import annotations

import io
import struct
from typing import Any

import numpy as np
import PIL.Image
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forebay as fb
from differential.sides import tensorflow
from images import deep_png, encoded, gif, jpeg, picture, png_with, psnr

JPEGS = {
    "4:2:0": lambda: jpeg(37, 53, subsampling="4:2:0"),
    "4:2:2": lambda: jpeg(37, 53, subsampling="4:2:2"),
    "4:4:4": lambda: jpeg(37, 53, subsampling="4:4:4"),
    "progressive": lambda: jpeg(37, 53, progressive=True),
    "grey": lambda: encoded(picture(37, 53), "JPEG", "L"),
    "one pixel": lambda: jpeg(1, 1),
}


@pytest.mark.parametrize("name", JPEGS)
@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
def test_jpeg_is_the_same(name: str, ratio: int) -> None:
    data = JPEGS[name]()
    for channels in (0, 1, 3):
        expected = tensorflow().io.decode_jpeg(data, channels=channels, ratio=ratio).numpy()
        np.testing.assert_array_equal(fb.io.decode_jpeg(data, channels, ratio), expected)


@pytest.mark.parametrize("subsampling", ["4:2:0", "4:2:2", "4:4:4"])
def test_tiny_jpegs_are_the_same_at_every_ratio(subsampling: str) -> None:
    for height, width in [(1, 1), (1, 3), (2, 2), (3, 1), (7, 7), (7, 2), (8, 3), (1, 9)]:
        for data in (
            jpeg(height, width, subsampling=subsampling),
            encoded(picture(height, width), "JPEG", "L", progressive=True),
        ):
            for ratio, channels in ((2, 0), (4, 3), (8, 0), (8, 1)):
                expected = tensorflow().io.decode_jpeg(data, channels=channels, ratio=ratio).numpy()
                np.testing.assert_array_equal(fb.io.decode_jpeg(data, channels, ratio), expected)


@pytest.mark.parametrize("how", [{"fancy_upscaling": False}, {"dct_method": "INTEGER_ACCURATE"}], ids=str)
def test_settings_of_the_jpeg_decoder_are_the_same(how: dict[str, Any]) -> None:
    data = jpeg(37, 53)
    np.testing.assert_array_equal(fb.io.decode_jpeg(data, **how), tensorflow().io.decode_jpeg(data, **how).numpy())


def test_inks_become_colours_as_in_tensorflow() -> None:
    data = encoded(picture(20, 30), "JPEG", "CMYK")
    expected = tensorflow().io.decode_jpeg(data, channels=3).numpy()
    np.testing.assert_array_equal(fb.io.decode_jpeg(data), expected)
    grey = fb.io.decode_jpeg(data, channels=1)
    assert np.abs(grey[..., 0] - expected @ np.array([0.299, 0.587, 0.114])).max() < 1.1


def _inks(before: bytes, mark: bool) -> bytes:
    """An image of inks with these bytes in front of all segments, with or without the mark of Adobe's programs."""
    data = encoded(picture(20, 30), "JPEG", "CMYK")
    at = data.index(b"\xff\xee")
    end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return data[:2] + before + (data[2:] if mark else data[2:at] + data[end:])


_COMMENT = b"\xff\xfe\x00\x13made with Adobe X"
_PROFILE = b"\xff\xe2\xff\xff" + bytes(65533)


@pytest.mark.parametrize("before", [b"", _COMMENT, 3 * _PROFILE], ids=["plain", "named elsewhere", "behind a profile"])
@pytest.mark.parametrize("mark", [False, True])
def test_only_the_mark_says_that_inks_are_inverted(before: bytes, mark: bool) -> None:
    data = _inks(before, mark)
    expected = tensorflow().io.decode_jpeg(data, channels=3).numpy()
    np.testing.assert_array_equal(fb.io.decode_jpeg(data), expected)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_grey_of_all_colours_is_the_same(dtype: Any) -> None:
    pixels = np.random.default_rng(1).integers(0, 1 << 16, (80, 90, 3)).astype(np.uint16)
    for data in (deep_png(pixels), encoded((pixels >> 8).astype(np.uint8), "PNG")):
        expected = tensorflow().io.decode_png(data, channels=1, dtype=dtype).numpy()
        np.testing.assert_array_equal(fb.io.decode_png(data, 1, dtype), expected)


def _gamma(value: int) -> tuple[bytes, bytes]:
    return b"gAMA", struct.pack(">I", value)


SRGB = b"sRGB", b"\0"
GAMMAS = {
    "sRGB": [SRGB],
    "1 / 2.2": [_gamma(45455)],
    "1 / 4.5": [_gamma(22222)],
    "2": [_gamma(200_000)],
    "next to 1": [_gamma(95_100)],
    "1": [_gamma(100_000)],
    "none": [_gamma(0)],
    "too large": [_gamma(625_000_001)],
    "two": [_gamma(22222), _gamma(45455)],
    "near sRGB": [SRGB, _gamma(47_000)],
    "not sRGB": [SRGB, _gamma(100_000)],
    "overruled": [_gamma(22222), SRGB],
    "no sRGB": [(b"sRGB", b"\4")],
}


@pytest.mark.parametrize("name", GAMMAS)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16], ids=lambda dtype: dtype.__name__)
def test_grey_of_a_png_that_tells_its_gamma_is_the_same(name: str, dtype: Any) -> None:
    pixels = np.random.default_rng(2).integers(0, 1 << 16, (60, 70, 3)).astype(np.uint16)
    pixels[:20] = pixels[:20, :, :1]
    flat = (pixels >> 8).astype(np.uint8)
    for whole in (
        deep_png(pixels),
        encoded(flat, "PNG"),
        encoded(flat, "PNG", "RGBA"),
        encoded(flat, "PNG", "P"),
        encoded(flat, "PNG", "P", transparency=3),
        encoded(flat, "PNG", "LA"),
    ):
        data = png_with(whole, *GAMMAS[name])
        for channels in (0, 1):
            expected = tensorflow().io.decode_png(data, channels=channels, dtype=dtype).numpy()
            np.testing.assert_array_equal(fb.io.decode_png(data, channels, dtype), expected)


PNGS = {
    "colours": lambda: encoded(picture(11, 17), "PNG"),
    "opacity": lambda: encoded(picture(11, 17), "PNG", "RGBA"),
    "grey": lambda: encoded(picture(11, 17), "PNG", "L"),
    "grey, opacity": lambda: encoded(picture(11, 17), "PNG", "LA"),
    "one bit": lambda: encoded(picture(11, 17), "PNG", "1"),
    "palette": lambda: encoded(picture(11, 17), "PNG", "P"),
    "palette, opacity": lambda: encoded(picture(11, 17), "PNG", "P", transparency=3),
    "16 bits": lambda: deep_png(picture(11, 17).astype(np.uint16) * 255 + 77),
    "16 bits, grey": lambda: deep_png(picture(11, 17)[..., :1].astype(np.uint16) * 255 + 77),
}


@pytest.mark.parametrize("name", PNGS)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16], ids=lambda dtype: dtype.__name__)
def test_png_is_the_same(name: str, dtype: Any) -> None:
    data = PNGS[name]()
    for channels in (0, 1, 3, 4):
        expected = tensorflow().io.decode_png(data, channels=channels, dtype=dtype).numpy()
        got = fb.io.decode_png(data, channels, dtype)
        assert got.shape == expected.shape
        assert got.dtype == expected.dtype
        if channels == 4 and name in ("one bit", "palette"):
            # TensorFlow fills in the largest number of so few bits, which then is next to nothing.
            assert (got[..., 3] == np.iinfo(dtype).max).all()
            got, expected = got[..., :3], expected[..., :3]
        np.testing.assert_array_equal(got, expected)


def test_decode_image_takes_every_format() -> None:
    theirs = tensorflow().io
    pictures = {
        "JPEG": jpeg(),
        "PNG": PNGS["colours"](),
        "deep PNG": PNGS["16 bits"](),
        "BMP": encoded(picture(11, 17), "BMP"),
    }
    for name, data in pictures.items():
        for dtype in (np.uint8, np.uint16, np.float32):
            expected = theirs.decode_image(data, dtype=dtype).numpy()
            np.testing.assert_allclose(fb.io.decode_image(data, dtype=dtype), expected, rtol=1e-6, err_msg=name)
    webp = encoded(picture(11, 17), "WEBP", lossless=True)
    np.testing.assert_array_equal(fb.io.decode_image(webp), picture(11, 17))


def test_animations() -> None:
    for frames in (1, 3):
        data = gif(frames)
        expected = tensorflow().io.decode_image(data).numpy()
        np.testing.assert_array_equal(fb.io.decode_image(data), expected)
        np.testing.assert_array_equal(fb.io.decode_image(data, expand_animations=False), expected[0])


def _gif_with_holes(**how: Any) -> bytes:
    frames = [PIL.Image.fromarray(picture(12, 9, seed)).quantize(4) for seed in range(3)]
    buffer = io.BytesIO()
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:], transparency=1, optimize=False, **how)
    return buffer.getvalue()


def test_nothing_is_black_in_animations() -> None:
    data = _gif_with_holes(disposal=1)
    expected = tensorflow().io.decode_image(data).numpy()
    assert (expected == 0).all(axis=-1).any()
    np.testing.assert_array_equal(fb.io.decode_image(data), expected)
    np.testing.assert_array_equal(fb.io.decode_image(data, expand_animations=False), expected[0])
    # TensorFlow leaves frames standing that are to be cleared before the next one.
    cleared = _gif_with_holes(disposal=2)
    np.testing.assert_array_equal(fb.io.decode_image(cleared)[0], expected[0])


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA"])
def test_bmp_is_the_same(mode: str) -> None:
    data = encoded(picture(11, 17), "BMP", mode)
    upside_down = data[:22] + struct.pack("<i", -11) + data[26:]
    for each in (data, upside_down):
        np.testing.assert_array_equal(fb.io.decode_image(each), tensorflow().io.decode_image(each).numpy())
    whole = fb.io.decode_image(data)
    for channels in (1, 3, 4):
        assert fb.io.decode_image(data, channels).shape == (11, 17, channels)
    np.testing.assert_array_equal(fb.io.decode_image(data, 4)[..., : min(whole.shape[-1], 3)], whole[..., :3])


def test_palettes_of_bmp_are_colours() -> None:
    # TensorFlow gives numbers of the palette.
    data = encoded(picture(11, 17), "BMP", "P")
    expected = np.asarray(PIL.Image.open(io.BytesIO(data)).convert("RGB"))
    np.testing.assert_array_equal(fb.io.decode_image(data), expected)


METHODS = ["bilinear", "nearest", "area", "bicubic", "lanczos3", "lanczos5", "gaussian", "mitchellcubic"]
sides = st.integers(1, 40)


@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=20, deadline=None)
@given(old=st.tuples(sides, sides), new=st.tuples(sides, sides), antialias=st.booleans(), depth=st.integers(1, 6))
def test_sizes_are_the_same(
    method: str, old: tuple[int, int], new: tuple[int, int], antialias: bool, depth: int
) -> None:
    rng = np.random.default_rng(sum(old))
    images = rng.integers(0, 256, (2, *old, depth), dtype=np.uint8)
    expected = tensorflow().image.resize(images, new, method, antialias=antialias).numpy()
    got = fb.image.resize(images, new, method, antialias=antialias)
    if old != new:
        # An image that keeps its size keeps its dtype in TensorFlow, and only then.
        assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, atol=0.02)
    np.testing.assert_allclose(fb.image.resize(images[0], new, method, antialias=antialias), got[0], atol=1e-4)
    whole = fb.image.resize(images, new, method, antialias=antialias, dtype=np.uint8)
    assert np.abs(whole - np.clip(got.astype(float), 0, 255)).max() <= 0.51


@settings(max_examples=30, deadline=None)
@given(old=st.tuples(st.integers(10, 60), st.integers(10, 60)), new=st.tuples(st.integers(8, 90), st.integers(8, 90)))
def test_proportions_are_the_same(old: tuple[int, int], new: tuple[int, int]) -> None:
    image = np.zeros((*old, 1), np.uint8)
    expected = tensorflow().image.resize(image, new, preserve_aspect_ratio=True).shape
    got = fb.image.resize(image, new, preserve_aspect_ratio=True).shape
    assert got == tuple(expected)


@pytest.mark.parametrize("size", [(430, 500), (900, 1200)])
def test_smaller_decoding_is_close_to_the_exact_result(size: tuple[int, int]) -> None:
    data = jpeg(*size)
    tf = tensorflow()
    for antialias in (False, True):
        expected = tf.image.resize(tf.io.decode_jpeg(data), (112, 96), antialias=antialias).numpy()
        exact = fb.image.decode_and_resize(data, (112, 96), antialias=antialias, exact=True)
        assert np.abs(exact - expected).max() <= 0.51
        assert psnr(fb.image.decode_and_resize(data, (112, 96), antialias=antialias), expected) > 30
