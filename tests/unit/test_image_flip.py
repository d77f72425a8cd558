"""Mirrored images, with NumPy's reversed views as the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forebay as fb
from forebay import _native
from images import picture

AXES = {"left_right": -2, "up_down": -3}
DTYPES = ["?", "u1", "i2", "f2", "f4", "i8", "longdouble", ">f4"]


@st.composite
def images(draw: st.DrawFn) -> Any:
    """Arrays of any dtype, as they lie in memory or cut, reversed, transposed or repeated."""
    rank = draw(st.sampled_from([3, 4]))
    shape = draw(st.tuples(*[st.integers(1, 4)] * (rank - 2), st.integers(1, 40), st.integers(1, 5)))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    steps = draw(st.tuples(*[st.sampled_from([1, 1, 2, -1, -3])] * rank))
    order = draw(st.permutations(range(rank)))
    stored = tuple(size * abs(step) for size, step in zip(shape, steps))
    values = np.arange(np.prod(stored)).astype(dtype).reshape([stored[axis] for axis in order])
    view = values.transpose(np.argsort(order))[tuple(slice(None, None, step) for step in steps)]
    if draw(st.booleans()):
        axis = draw(st.integers(0, rank - 1))
        view = np.broadcast_to(view.take([0], axis), view.shape)
    return view


@settings(max_examples=300, deadline=None)
@given(images(), st.sampled_from(sorted(AXES)), st.integers(0, 99))
def test_flips_are_those_of_numpy(values: Any, side: str, seed: int) -> None:
    expected = np.flip(values, AXES[side])
    made = getattr(fb.image, f"flip_{side}")(values)
    np.testing.assert_array_equal(made, expected)
    assert made.dtype == values.dtype
    assert made.flags.c_contiguous
    assert made.flags.writeable
    assert not np.shares_memory(made, values)
    drawn = getattr(fb.image, f"random_flip_{side}")(values, np.random.default_rng(seed))
    marks = np.random.default_rng(seed).integers(0, 2, len(values) if values.ndim == 4 else 1).astype(bool)
    marks = marks.reshape(-1, 1, 1, 1) if values.ndim == 4 else marks[0]
    np.testing.assert_array_equal(drawn, np.where(marks, expected, values))


@pytest.mark.parametrize("width", [1, 5, 16, 17, 61])
@pytest.mark.parametrize("channels", [*range(1, 9), 12, 16, 24, 31, 32, 33])
def test_pixels_of_every_width(width: int, channels: int) -> None:
    values = np.random.default_rng(0).integers(0, 256, (3, width, channels), np.uint8)
    np.testing.assert_array_equal(fb.image.flip_left_right(values), values[:, ::-1])
    np.testing.assert_array_equal(fb.image.flip_left_right(values[:, ::-1]), values)
    np.testing.assert_array_equal(fb.image.flip_up_down(values[:, ::-1]), values[::-1, ::-1])


def test_torch_takes_what_was_flipped() -> None:
    torch = pytest.importorskip("torch")
    image = picture(5, 7)
    for flip in (fb.image.flip_left_right, fb.image.flip_up_down):
        np.testing.assert_array_equal(torch.from_numpy(flip(image)).numpy(), flip(image))


def test_no_images_at_all() -> None:
    none = np.empty((0, 4, 4, 3), np.float32)
    assert fb.image.flip_left_right(none).shape == none.shape
    assert fb.image.random_flip_up_down(none, np.random.default_rng(1)).shape == none.shape


def test_the_kernel_checks_what_it_is_told() -> None:
    values, marks = np.zeros((2, 3, 4, 1), np.uint8), np.ones(2, bool)
    for arguments in (
        (values, np.ones(3, bool), False, values.copy()),
        (values, marks, False, np.zeros((2, 3, 5, 1), np.uint8)),
        (values, marks, False, values.astype(np.int16)),
        (values[0], marks, False, values.copy()),
    ):
        with pytest.raises(ValueError, match=r"mark|shape|dtype|axes"):
            _native.flip(*arguments)
    for out in (np.zeros((2, 3, 4, 2), np.uint8)[..., :1], np.frombuffer(bytes(24), np.uint8).reshape(values.shape)):
        with pytest.raises((ValueError, BufferError)):
            _native.flip(values, marks, False, out)


@pytest.mark.parametrize("call", [fb.image.random_flip_left_right, fb.image.random_flip_up_down])
def test_only_a_generator_draws(call: Any) -> None:
    with pytest.raises(fb.PlanError, match=f"{call.__name__}.*give the generator"):
        call(picture(2, 2), None)
