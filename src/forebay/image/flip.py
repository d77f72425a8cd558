"""Mirrored images: one of shape (height, width, channels), or a batch of them.

What is mirrored is a copy, row behind row, that nothing later has to bring into order pixel by pixel. What is drawn is
drawn from the generator that is handed in, which ``map(rng=True)`` seeds by the element's number. Every image of a
batch gets draws of its own.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay._native import flip
from forebay.block.aligned import aligned_empty
from forebay.image.resize import as_batch
from forebay.image.transform import generator

Image = NDArray[Any]


def flip_left_right(image: Any) -> Image:
    """The mirror image.

    >>> import forebay as fb
    >>> fb.image.flip_left_right(np.arange(3).reshape(1, 3, 1))[0, :, 0]
    array([2, 1, 0])
    """
    return _flipped("flip_left_right", image, None, upside_down=False)


def flip_up_down(image: Any) -> Image:
    """The image upside down.

    >>> import forebay as fb
    >>> fb.image.flip_up_down(np.arange(3).reshape(3, 1, 1))[:, 0, 0]
    array([2, 1, 0])
    """
    return _flipped("flip_up_down", image, None, upside_down=True)


def random_flip_left_right(image: Any, rng: "np.random.Generator") -> Image:
    """The image or, as often, its mirror image.

    >>> import forebay as fb
    >>> images = fb.Dataset.from_tensor_slices(np.arange(6).reshape(2, 1, 3, 1))
    >>> flipped = images.map(fb.image.random_flip_left_right, rng=True, seed=3)
    >>> [each.reshape(-1).tolist() for each in flipped]
    [[2, 1, 0], [3, 4, 5]]
    """
    return _flipped("random_flip_left_right", image, rng, upside_down=False)


def random_flip_up_down(image: Any, rng: "np.random.Generator") -> Image:
    """The image or, as often, the image upside down.

    >>> import forebay as fb
    >>> images = fb.Dataset.from_tensor_slices(np.arange(6).reshape(2, 3, 1, 1))
    >>> flipped = images.map(fb.image.random_flip_up_down, rng=True, seed=3)
    >>> [each.reshape(-1).tolist() for each in flipped]
    [[2, 1, 0], [3, 4, 5]]
    """
    return _flipped("random_flip_up_down", image, rng, upside_down=True)


def _flipped(call: str, image: Any, rng: Any, *, upside_down: bool) -> Image:
    """All images turned round or, with `rng`, those that it picks."""
    images, single = as_batch(call, image)
    marks = np.ones(len(images), bool)
    if call.startswith("random"):
        drawn = generator(call, rng)
        # One number by itself is the same number at a quarter of the price.
        if single and not drawn.integers(0, 2):
            unturned: Image = images[0]
            return unturned
        if not single:
            marks = drawn.integers(0, 2, len(images)).astype(bool)
    made = aligned_empty(images.shape, images.dtype)
    flip(images, marks, upside_down, made)
    return made[0] if single else made
