"""Cutting, padding and scaling images: one of shape (height, width, channels), or a batch of them.

What is drawn is drawn from the generator that is handed in, which ``map(rng=True)`` seeds by the element's number.
Every image of a batch gets draws of its own.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from forebay.errors import DataError, PlanError
from forebay.image.resize import as_batch, checked_size

Image = NDArray[Any]


def crop(image: Any, top: int, left: int, size: tuple[int, int]) -> Image:
    """The part of an image whose upper left corner is at (top, left).

    >>> import forebay as fb
    >>> fb.image.crop(np.arange(12).reshape(3, 4, 1), 1, 2, (2, 2))[..., 0]
    array([[ 6,  7],
           [10, 11]])
    """
    height, width = checked_size("crop", size)
    images, single = as_batch("crop", image)
    old = images.shape[1:3]
    if top < 0 or left < 0 or top + height > old[0] or left + width > old[1]:
        raise DataError(f"crop(top={top}, left={left}, size={(height, width)}) reaches beyond an image of size {old}")
    part = images[:, top : top + height, left : left + width]
    return part[0] if single else part


def center_crop(image: Any, size: tuple[int, int]) -> Image:
    """The middle of an image.

    >>> import forebay as fb
    >>> fb.image.center_crop(np.arange(12).reshape(3, 4, 1), (1, 2))[..., 0]
    array([[5, 6]])
    """
    height, width = checked_size("center_crop", size)
    old = as_batch("center_crop", image)[0].shape[1:3]
    return crop(image, (old[0] - height) // 2, (old[1] - width) // 2, size)


def random_crop(image: Any, size: tuple[int, int], rng: "np.random.Generator") -> Image:
    """A part of that size, anywhere in the image.

    >>> import forebay as fb
    >>> images = fb.Dataset.from_tensor_slices(np.arange(50).reshape(2, 5, 5, 1))
    >>> cut = images.map(lambda image, rng: fb.image.random_crop(image, (2, 2), rng), rng=True, seed=1)
    >>> [each.shape for each in cut]
    [(2, 2, 1), (2, 2, 1)]
    """
    height, width = checked_size("random_crop", size)
    images, single = as_batch("random_crop", image)
    room = images.shape[1] - height, images.shape[2] - width
    if min(room) < 0:
        raise DataError(
            f"random_crop(size={(height, width)}): an image of size {images.shape[1:3]} is too small; resize or pad it"
        )
    drawn = generator("random_crop", rng)
    if single:
        # One number by itself is the same number at a quarter of the price.
        top, left = (drawn.integers(0, most, endpoint=True) for most in room)
        return images[0, top : top + height, left : left + width]
    tops, lefts = (drawn.integers(0, most, len(images), endpoint=True) for most in room)
    made = np.empty((len(images), height, width, images.shape[3]), images.dtype)
    for each, source, top, left in zip(made, images, tops.tolist(), lefts.tolist()):
        each[...] = source[top : top + height, left : left + width]
    return made


def pad(
    image: Any, size: tuple[int, int], value: float = 0, *, top: int | None = None, left: int | None = None
) -> Image:
    """The image on a ground of that size, in the middle unless `top` or `left` say where.

    >>> import forebay as fb
    >>> fb.image.pad(np.ones((1, 2, 1), int), (2, 4), left=0)[..., 0]
    array([[1, 1, 0, 0],
           [0, 0, 0, 0]])
    """
    height, width = checked_size("pad", size)
    images, single = as_batch("pad", image)
    room = height - images.shape[1], width - images.shape[2]
    at_top = room[0] // 2 if top is None else top
    at_left = room[1] // 2 if left is None else left
    if not (0 <= at_top <= room[0] and 0 <= at_left <= room[1]):
        raise DataError(
            f"pad(size={(height, width)}, top={top}, left={left}): an image of size {images.shape[1:3]} does not lie "
            "inside; crop or resize it"
        )
    made = np.full((len(images), height, width, images.shape[3]), value, images.dtype)
    made[:, at_top : at_top + images.shape[1], at_left : at_left + images.shape[2]] = images
    return made[0] if single else made


def normalize(image: Any, mean: ArrayLike, std: ArrayLike, scale: float = 1.0) -> Image:
    """``(image * scale - mean) / std`` in float32; `mean` and `std` are numbers, or one for each channel.

    With ``scale=1 / 255``, mean and deviation are those of values from 0 to 1.

    >>> import forebay as fb
    >>> fb.image.normalize(np.array([[[0, 255]]], np.uint8), mean=[0.5, 0.0], std=0.5, scale=1 / 255)
    array([[[-1.,  2.]]], dtype=float32)
    """
    images, single = as_batch("normalize", image)
    means, deviations = np.asarray(mean, np.float64), np.asarray(std, np.float64)
    for name, given in (("mean", means), ("std", deviations)):
        if given.shape not in ((), (1,), images.shape[3:]):
            raise PlanError(f"normalize({name}={given}): give a number, or one for each of {images.shape[3]} channels")
    if not (deviations > 0).all():
        raise PlanError(f"normalize(std={deviations}): a deviation must be above 0")
    # One multiplication and one addition for every pixel.
    made = images * (scale / deviations).astype(np.float32)
    made -= (means / deviations).astype(np.float32)
    made = made.astype(np.float32, copy=False)
    return made[0] if single else made


def generator(call: str, rng: Any) -> "np.random.Generator":
    """The generator that a function was handed; PlanError if it is anything else."""
    if not isinstance(rng, np.random.Generator):
        raise PlanError(f"{call}(rng={rng!r}): give the generator that map(rng=True) hands to a function")
    return rng
