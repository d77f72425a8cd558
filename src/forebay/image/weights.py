"""How much of which pixels goes into one of another size, along one axis. All positions are those of tf.image.

Sizes count from pixel centres: pixel i of n covers i / n to (i + 1) / n of the image. Positions are worked out in
single precision, as TensorFlow does: in double precision, some of them fall on the other side of a pixel's border.
"""

from collections.abc import Callable
from functools import lru_cache
from math import ceil

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Taps = tuple[NDArray[np.int64], Floats]
"""For every new pixel the first old one, and the weights from there on."""

_ONE = np.float32(1)
_HALF = np.float32(0.5)
_TABLE = 1024  # Cubic weights are looked up at so many places between two pixels.


@lru_cache(maxsize=256)
def taps(method: str, antialias: bool, old: int, new: int) -> Taps:
    """The weights by which `old` pixels become `new`."""
    if method == "area":
        return _area(old, new)
    if method == "bilinear" and not antialias:
        return _bilinear(old, new)
    if method == "bicubic" and not antialias:
        return _bicubic(old, new)
    kernel, radius = KERNELS[method]
    return _sampled(kernel, radius, antialias, old, new)


@lru_cache(maxsize=256)
def half_taps(method: str, antialias: bool, old: int, new: int) -> Taps:
    """The same for pixels of which every two have been made one, and are first spread again: three parts to one."""
    starts, weights = taps(method, antialias, old, new)
    pixels = starts[:, None] + np.arange(weights.shape[1])
    near, half = pixels // 2, (old + 1) // 2
    far = np.clip(near + np.where(pixels % 2, 1, -1), 0, half - 1)
    quarter = weights * np.float32(0.25)
    return _packed(np.concatenate([near, far], axis=1), np.concatenate([quarter * 3, quarter], axis=1), half)


def nearest(old: int, new: int) -> NDArray[np.int64]:
    """The pixel that each new pixel's centre lies in."""
    centres = (np.arange(new, dtype=np.float32) + _HALF) * _scale(old, new)
    places: NDArray[np.int64] = np.floor(centres).astype(np.int64)
    return np.minimum(places, old - 1, out=places)


def _scale(old: int, new: int) -> np.float32:
    return np.float32(old) / np.float32(new)


def _centres(old: int, new: int) -> Floats:
    return (np.arange(new, dtype=np.float32) + _HALF) * _scale(old, new) - _HALF


def _bilinear(old: int, new: int) -> Taps:
    centres = _centres(old, new)
    below = np.floor(centres)
    part = centres - below
    pixels = np.stack([below, np.ceil(centres)], axis=1).astype(np.int64)
    return _packed(np.clip(pixels, 0, old - 1), np.stack([_ONE - part, part], axis=1), old)


def _bicubic(old: int, new: int) -> Taps:
    """Keys' kernel from a table; what lies outside the image has no weight."""
    centres = _centres(old, new)
    below = np.floor(centres)
    offset = np.rint((centres - below) * np.float32(_TABLE)).astype(np.int64)
    x = np.arange(_TABLE + 1) / _TABLE
    near, far = keys_cubic(x).astype(np.float32), keys_cubic(x + 1).astype(np.float32)
    weights = np.stack([far[offset], near[offset], near[_TABLE - offset], far[_TABLE - offset]], axis=1)
    pixels = below.astype(np.int64)[:, None] + np.arange(-1, 3)
    weights[(pixels < 0) | (pixels >= old)] = 0
    return _packed(np.clip(pixels, 0, old - 1), weights / weights.sum(axis=1, keepdims=True), old)


def _area(old: int, new: int) -> Taps:
    """Every old pixel by how much of it lies in the new one."""
    scale = _scale(old, new)
    begins = np.arange(new, dtype=np.float32) * scale
    ends = np.arange(1, new + 1, dtype=np.float32) * scale
    first, last = np.floor(begins).astype(np.int64), np.ceil(ends).astype(np.int64)
    pixels = first[:, None] + np.arange(int((last - first).max()))
    covered = np.minimum(pixels + 1, ends[:, None]) - np.maximum(pixels, begins[:, None])
    weights = (np.maximum(covered, 0) / scale).astype(np.float32)
    return _packed(np.clip(pixels, 0, old - 1), weights, old)


def _sampled(kernel: Callable[..., NDArray[np.float64]], radius: float, antialias: bool, old: int, new: int) -> Taps:
    """A kernel around each new pixel's centre, as wide as a new pixel if `antialias`; weights add up to one."""
    # Not quite old / new in single precision.
    scale = _ONE / _scale(new, old)
    stretch = max(scale, _ONE) if antialias else _ONE
    reach = np.float32(radius) * stretch
    centres = (np.arange(new, dtype=np.float32) + _HALF) * scale
    first = np.clip(np.ceil(centres - reach - _HALF).astype(np.int64), 0, old - 1)
    last = np.clip(np.floor(centres + reach - _HALF).astype(np.int64), 0, old - 1)
    pixels = first[:, None] + np.arange(min(2 * ceil(reach) + 1, old))
    # The place where a kernel ends decides about a whole pixel, so that it must be worked out as TensorFlow does.
    places = np.abs((pixels.astype(np.float32) + _HALF - centres[:, None]) * (_ONE / stretch))
    weights = kernel(places.astype(np.float64))
    weights[pixels > last[:, None]] = 0
    total = weights.sum(axis=1, keepdims=True)
    weights /= np.where(np.abs(total) < 1e-35, 1, total)
    return _packed(np.minimum(pixels, old - 1), weights.astype(np.float32), old)


def _packed(pixels: NDArray[np.int64], weights: Floats, old: int) -> Taps:
    """Weights of pixels that may be named twice, as weights of neighbours from a first one on that are all inside."""
    used = np.where(weights != 0, pixels, pixels.max(axis=1, keepdims=True))
    wide = int((np.where(weights != 0, pixels, 0).max(axis=1) - used.min(axis=1)).max()) + 1
    wide = min(max(wide, 1), old)
    starts = np.minimum(used.min(axis=1), old - wide)
    packed = np.zeros((len(pixels), wide), np.float32)
    rows, columns = np.nonzero(weights)
    np.add.at(packed, (rows, pixels[rows, columns] - starts[rows]), weights[rows, columns])
    return starts, packed


def keys_cubic(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """Keys' cubic with a = -0.5."""
    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return np.where(x >= 2, 0.0, np.where(x >= 1, far, near))


def _mitchell(x: NDArray[np.float64]) -> NDArray[np.float64]:
    near = (7 / 6 * x - 2) * x * x + 8 / 9
    far = ((-7 / 18 * x + 2) * x - 10 / 3) * x + 16 / 9
    return np.where(x >= 2, 0.0, np.where(x >= 1, far, near))


def _triangle(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.maximum(1 - x, 0.0)


def _gaussian(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(x >= 1.5, 0.0, np.exp(-2 * x * x))


def _lanczos(radius: int) -> Callable[[NDArray[np.float64]], NDArray[np.float64]]:
    def kernel(x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(x > radius, 0.0, np.sinc(x) * np.sinc(x / radius))

    return kernel


KERNELS: dict[str, tuple[Callable[..., NDArray[np.float64]], float]] = {
    "bilinear": (_triangle, 1),
    "bicubic": (keys_cubic, 2),
    "lanczos3": (_lanczos(3), 3),
    "lanczos5": (_lanczos(5), 5),
    "gaussian": (_gaussian, 1.5),
    "mitchellcubic": (_mitchell, 2),
}
"""Methods that are a kernel, and how far it reaches."""
