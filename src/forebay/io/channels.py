"""Pixels with more or fewer channels than they were stored with."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

# Brightness of red, green and blue, in parts of 2**15: as libpng cuts them, and not as they would be rounded.
LUMA = np.array([9797, 19234, 3737], np.int64)


def with_channels(pixels: NDArray[Any], channels: int) -> NDArray[Any]:
    """Opacity is left out or made full; grey of colours is what libpng makes of them."""
    have = pixels.shape[-1]
    if have == channels:
        return pixels
    if have in (2, 4) and channels in (1, 3):
        return with_channels(np.ascontiguousarray(pixels[..., : have - 1]), channels)
    if have == 3 and channels == 1:
        # libpng rounds what is fine enough, and nothing else.
        grey = (pixels.astype(np.int64) @ LUMA + (1 << 14 if pixels.dtype == np.uint16 else 0)) >> 15
        return grey.astype(pixels.dtype)[..., None]
    if have == 2:
        return np.concatenate([np.repeat(pixels[..., :1], 3, axis=-1), pixels[..., 1:]], axis=-1)
    if channels in (2, 4):
        opaque = np.full((*pixels.shape[:-1], 1), np.iinfo(pixels.dtype).max, pixels.dtype)
        return np.concatenate([with_channels(pixels, channels - 1), opaque], axis=-1)
    return np.repeat(pixels, channels, axis=-1)
