"""The decoder of ``decode_and_resize``: which files it takes, and how close its images are."""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forebay as fb
from forebay._native import JpegPlanes
from forebay.image.weights import taps
from images import encoded, jpeg, picture

COMMON = {
    "4:2:0": jpeg(130, 187, subsampling="4:2:0"),
    "4:2:2": jpeg(130, 187, subsampling="4:2:2"),
    "4:4:4": jpeg(130, 187, subsampling="4:4:4"),
    "grey": jpeg(130, 187, mode="L"),
    "codes of its own": jpeg(130, 187, optimize=True),
    "restarts": jpeg(130, 187, restart_marker_blocks=5),
    "a restart for every unit": jpeg(130, 187, restart_marker_blocks=1),
    "flat": encoded(np.full((130, 187, 3), 77, np.uint8), "JPEG"),
    "coarse": encoded(picture(130, 187), "JPEG", quality=20),
    "fine": encoded(picture(130, 187), "JPEG", quality=100),
}
OTHERS = {
    "progressive": jpeg(130, 187, progressive=True),
    "inks": jpeg(130, 187, mode="CMYK"),
    "red, green and blue": jpeg(130, 187, keep_rgb=True),
}


def close(made: Any, expected: Any) -> float:
    """Decibels."""
    return float(10 * np.log10(255**2 / max(np.mean((made.astype(float) - expected) ** 2), 1e-9)))


def decoded(data: bytes, ratio: int = 1, grey: bool = False, most: int = 1 << 20) -> Any:
    return JpegPlanes().decode(data, ratio, grey, most)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("ratio", [1, 2, 4, 8])
@pytest.mark.parametrize("name", COMMON)
def test_images_are_those_of_the_other_decoder(name: str, ratio: int, channels: int) -> None:
    data = COMMON[name]
    size = int(130 / ratio / 1.6), int(187 / ratio / 1.6)
    assert decoded(data) is not None
    expected = fb.image.resize(fb.io.decode_jpeg(data, channels, ratio), size)
    # There, and only there, the other one repeats colours of half the resolution instead of spreading them.
    least = 30 if (name, ratio) == ("4:2:2", 8) else 38
    for dtype in (np.uint8, np.float32):
        made = fb.image.decode_and_resize(data, size, channels=channels, dtype=dtype)
        assert (made.shape, made.dtype) == ((*size, channels), dtype)
        assert close(made, expected) > least


@pytest.mark.parametrize("name", OTHERS)
def test_other_kinds_are_left_to_the_other_decoder(name: str) -> None:
    data = OTHERS[name]
    assert decoded(data) is None
    exact = fb.image.decode_and_resize(data, (60, 80), exact=True)
    assert close(fb.image.decode_and_resize(data, (60, 80)), exact) > 35


def test_pixels_are_fixed() -> None:
    made = [fb.image.decode_and_resize(COMMON["4:2:0"], size) for size in ((80, 110), (40, 50), (15, 20))]
    assert [zlib.crc32(image.tobytes()) for image in made] == [554362957, 3879906452, 1432456201]


def test_sizes_of_planes() -> None:
    assert decoded(COMMON["4:2:0"]) == ((130, 187), (65, 94))
    assert decoded(COMMON["4:2:0"], 2) == ((65, 94), (65, 94))
    assert decoded(COMMON["4:2:0"], 8) == ((17, 24), (17, 24))
    assert decoded(COMMON["4:2:2"], 4) == ((33, 47), (33, 24))
    assert decoded(COMMON["4:4:4"]) == ((130, 187), (130, 187))
    assert decoded(COMMON["4:2:0"], 1, True) == ((130, 187), (130, 187))
    assert decoded(COMMON["4:2:0"], most=130 * 187) is not None
    assert decoded(COMMON["4:2:0"], most=130 * 187 - 1) is None


def test_one_decoder_goes_from_image_to_image() -> None:
    planes = JpegPlanes()
    first = taps("bilinear", False, 130, 20), taps("bilinear", False, 187, 30)
    for name in (*COMMON, *reversed(COMMON)):
        made, alone = np.empty((2, 20, 30, 3), np.uint8)
        for each, out in ((planes, made), (JpegPlanes(), alone)):
            sizes = each.decode(COMMON[name], 1, False, 1 << 20)
            assert sizes is not None
            colours = [taps("bilinear", False, old, new) for old, new in zip(sizes[1], (20, 30), strict=True)]
            each.resize(*first[0], *first[1], *colours[0], *colours[1], out)
        np.testing.assert_array_equal(made, alone)


def test_what_is_cut_short_is_left_to_the_other_decoder() -> None:
    data = COMMON["restarts"]
    assert all(decoded(data[:size]) is None for size in range(len(data)))
    # What follows the end is no part of the image.
    assert decoded(data + b"more") == decoded(data)


def test_a_size_that_is_only_claimed_is_refused() -> None:
    data = COMMON["4:2:0"]
    at = data.index(b"\xff\xc0") + 5
    assert decoded(data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :], most=1 << 40) is None


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damage_never_leads_beyond_the_image(data: st.DataObject) -> None:
    broken = bytearray(data.draw(st.sampled_from(list(COMMON.values()))))
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    found = decoded(bytes(broken), data.draw(st.sampled_from([1, 2, 4, 8])))
    assert found is None or all(0 < side <= 1 << 20 for plane in found for side in plane)


def test_the_kernel_checks_what_it_is_told() -> None:
    planes, one = JpegPlanes(), taps("bilinear", False, 130, 20)
    out = np.empty((20, 20, 3), np.uint8)
    with pytest.raises(ValueError, match="ratio"):
        planes.decode(COMMON["4:2:0"], 3, False, 1 << 20)
    with pytest.raises(ValueError, match="nothing has been decoded"):
        planes.resize(*one, *one, *one, *one, out)
    planes.decode(COMMON["4:2:0"], 1, False, 1 << 20)
    with pytest.raises(IndexError, match="beyond"):
        planes.resize(*one, *one, *one, *one, out)
    with pytest.raises(ValueError, match="channels"):
        planes.resize(*one, *one, *one, *one, np.empty((20, 20, 2), np.uint8))
    with pytest.raises(TypeError):
        planes.resize(*one, *one, *one, *one, out[:, ::2])
