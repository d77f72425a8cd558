"""Values of a view of a file, which may lie in any order and with gaps between them, in few reads."""

from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import read_ranges
from forebay.block import Indices

# Gaps up to this many bytes are read too, which takes less time than another read does.
_GAP = 2048
# What is read at once, so that gaps take no more memory than this.
_PIECE = 1 << 20


def read_strided(
    file: int, place: int, strides: tuple[int, ...], out: NDArray[Any], rows: Indices | None = None
) -> None:
    """Fill an array with values that lie so many bytes from each other on each axis, the first of them at `place`.

    `rows` are numbers on the first axis, if they are not simply those from 0 on. EOFError if the file is too short.
    """
    near, far, span = _axes(strides, out, rows is not None)
    axis = _divided(near, far, span, strides, out)
    if axis is not None:
        for begin, end in ((0, out.shape[axis] // 2), (out.shape[axis] // 2, out.shape[axis])):
            part = out[(slice(None),) * axis + (slice(begin, end),)]
            if rows is not None and axis == 0:
                read_strided(file, place, strides, part, rows[begin:end])
            else:
                read_strided(file, place + begin * strides[axis], strides, part, rows)
        return
    # Where the lowest value lies, for those axes that go backwards.
    below = sum(min(0, strides[axis] * (out.shape[axis] - 1)) for axis in near)
    starts = np.array(place + below)
    for axis in far:
        numbers = rows if rows is not None and axis == 0 else np.arange(out.shape[axis])
        starts = np.add.outer(starts, numbers * strides[axis])
    data = np.empty(starts.size * span, np.uint8)
    flat = starts.reshape(-1).astype(np.int64, copy=False)
    read_ranges(file, flat, flat + span, data)
    between = [prod(starts.shape[i + 1 :]) * span for i in range(starts.ndim)]
    there = np.ndarray(
        (*starts.shape, *(out.shape[axis] for axis in near)),
        out.dtype,
        data,
        -below,
        (*between, *(strides[axis] for axis in near)),
    )
    out.transpose((*far, *near))[...] = there


def _axes(strides: tuple[int, ...], out: NDArray[Any], apart: bool) -> tuple[list[int], list[int], int]:
    """The axes along which values lie so close that one read has them all, the others, and the bytes of such a read.

    Those that follow have longer and longer strides, but for the first axis if that is read `apart`.
    """
    order = sorted(range(int(apart), out.ndim), key=lambda axis: abs(strides[axis]))
    span = out.itemsize
    near: list[int] = []
    for axis in order:
        step = abs(strides[axis])
        if step > span + _GAP and out.shape[axis] > 1:
            break
        span += step * (out.shape[axis] - 1)
        near.append(axis)
    return near, order[len(near) :] + [0] * apart, span


def _divided(near: list[int], far: list[int], span: int, strides: tuple[int, ...], out: NDArray[Any]) -> int | None:
    """The axis to divide, the one with the longest strides, if it would be too much to read at once."""
    if prod(out.shape[axis] for axis in far) * span <= _PIECE:
        return None
    return next((axis for axis in reversed(near + far) if out.shape[axis] > 1 and strides[axis]), None)
