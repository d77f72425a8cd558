"""Grey of PNG images that tell how bright their numbers are: summed up as light, with libpng's tables and rounding.

Gammas are in parts of 100,000, as in the file.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.io.channels import LUMA

_ONE = 100_000
# How much of 16 bits libpng's tables leave out if 8 of them are wanted.
_SHIFT_TO_8 = 5


def counts(gamma: int) -> bool:
    """Whether libpng finds it worth looking at: 0 stands for what is not told, or for nonsense."""
    return gamma != 0 and (_significant(gamma) or _significant(_reciprocal(gamma)))


def linear_grey(colours: NDArray[Any], gamma: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Grey of red, green and blue, for an image that is wanted as `dtype`; with the bits that the colours have."""
    deep = colours.dtype == np.uint16
    shift = _SHIFT_TO_8 if deep and dtype == np.uint8 else 0
    values = np.arange(1 << (16 if deep else 8) - shift)
    screen = _reciprocal(gamma)
    to_light = _table(values, screen, deep)
    from_light = _table(values, _reciprocal(screen), deep)
    light = (to_light[colours >> shift] @ LUMA + (1 << 14)) >> 15
    grey = from_light[light >> shift]
    first = colours[..., 0]
    same = _to_8_bits(int(gamma * 1e-5 * screen + 0.5))[first >> shift] if shift else first
    is_grey = (first == colours[..., 1]) & (first == colours[..., 2])
    return np.where(is_grey, same, grey).astype(colours.dtype)[..., None]


def _significant(gamma: int) -> bool:
    return not 95_000 <= gamma <= 105_000


def _reciprocal(gamma: int) -> int:
    return int(1e10 / gamma + 0.5)


def _table(values: NDArray[Any], gamma: int, deep: bool) -> NDArray[np.int64]:
    most = 65535 if deep else 255
    top = int(values[-1])
    if _significant(gamma):
        return np.floor(most * np.power(values / top, gamma * 1e-5) + 0.5).astype(np.int64)
    return (values * most + (top + 1) // 2) // top


def _to_8_bits(gamma: int) -> NDArray[np.int64]:
    """16 bits that are rounded to 8, and these times 257."""
    top = (1 << 16 - _SHIFT_TO_8) - 1
    levels = np.arange(255) * 257
    halves = np.floor(65535 * np.power((levels + 128) / 65535, gamma * 1e-5) + 0.5).astype(np.int64)
    bounds = (halves * top + 32768) // 65535 + 1
    return np.searchsorted(bounds, np.arange(top + 1), side="right") * 257
