"""Images in another size, as tf.image makes them."""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forebay._native import resize as resize_images
from forebay.errors import DataError, PlanError
from forebay.image.weights import KERNELS, Taps, nearest, taps

Image = NDArray[Any]

METHODS = ("nearest", "area", *KERNELS)


def resize(
    image: Any,
    size: tuple[int, int],
    method: str = "bilinear",
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    *,
    dtype: DTypeLike | None = None,
    out: Image | None = None,
) -> Image:
    """One image (height, width, channels), or a batch of them with one more leading axis, in another size.

    The same as ``tf.image.resize`` up to single precision.

    Args:
        image: an array of numbers.
        size: the new height and width.
        method: ``"bilinear"``, ``"nearest"``, ``"area"``, ``"bicubic"``, ``"lanczos3"``, ``"lanczos5"``,
            ``"gaussian"`` or ``"mitchellcubic"``.
        preserve_aspect_ratio: `size` is the most that both sides may be; the image keeps its proportions.
        antialias: when making an image smaller, let every old pixel count. Without, pixels between the samples are
            left out. Makes no difference to ``"nearest"`` and ``"area"``.
        dtype: float32 by default, for ``"nearest"`` the image's own. With uint8, results are rounded and kept within
            0 to 255.
        out: an array of the result's shape and dtype to write to.

    >>> import forebay as fb
    >>> fb.image.resize(np.array([[[0.0], [4.0]]]), (1, 4))[0, :, 0]
    array([0., 1., 3., 4.], dtype=float32)
    >>> fb.image.resize(np.zeros((8, 600, 400, 3), np.uint8), (60, 60), preserve_aspect_ratio=True).shape
    (8, 60, 40, 3)
    """
    height, width = checked_size("resize", size)
    if method not in METHODS:
        raise PlanError(f"resize(method={method!r}): method must be one of {', '.join(METHODS)}")
    images, single = as_batch("resize", image)
    count, old_height, old_width, channels = images.shape
    if preserve_aspect_ratio:
        height, width = fitting(old_height, old_width, height, width)
    made = np.dtype(dtype) if dtype is not None else images.dtype if method == "nearest" else np.dtype(np.float32)
    shape = (count, height, width, channels)
    if out is None:
        result = np.empty(shape, made)
    else:
        result = out[None] if single else out
        if result.shape != shape or result.dtype != made:
            raise DataError(
                f"resize(): out has shape {out.shape} and dtype {out.dtype}, the result {shape[single:]} and {made}"
            )
    if method == "nearest":
        picked = images[:, nearest(old_height, height)[:, None], nearest(old_width, width)]
        _store(picked, result)
    else:
        _weigh(images, taps(method, antialias, old_height, height), taps(method, antialias, old_width, width), result)
    return result[0] if single else result


def _weigh(images: Image, rows: Taps, columns: Taps, result: Image) -> None:
    source = np.ascontiguousarray(images, images.dtype if images.dtype == np.uint8 else np.float32)
    if result.dtype in (np.uint8, np.float32) and result.flags.c_contiguous:
        resize_images(source, *rows, *columns, result)
        return
    made = np.empty(result.shape, np.float32)
    resize_images(source, *rows, *columns, made)
    _store(made, result)


def _store(values: Image, result: Image) -> None:
    """Values as the result's dtype: rounded and within its range where those are whole numbers."""
    if result.dtype.kind in "iu" and values.dtype != result.dtype:
        limits = np.iinfo(result.dtype)
        values = np.clip(np.floor(values + 0.5) if values.dtype.kind == "f" else values, limits.min, limits.max)
    result[...] = values


def fitting(old_height: int, old_width: int, height: int, width: int) -> tuple[int, int]:
    """The largest size of the same proportions that is no larger than height and width."""
    # In single precision, where halves fall as they do in TensorFlow.
    scale = min(np.float32(height) / np.float32(old_height), np.float32(width) / np.float32(old_width))
    new_height, new_width = (int(np.rint(scale * np.float32(each))) for each in (old_height, old_width))
    return max(new_height, 1), max(new_width, 1)


def checked_size(call: str, size: Any) -> tuple[int, int]:
    """A size of two whole numbers; PlanError if it is anything else."""
    try:
        height, width = (int(each) for each in size)
        if height < 1 or width < 1 or (height, width) != tuple(size):
            raise ValueError
    except (TypeError, ValueError):
        raise PlanError(f"{call}(size={size!r}): size must be a height and a width of at least 1") from None
    return height, width


def as_batch(call: str, image: Any) -> tuple[Image, bool]:
    """Images with a leading axis, and whether there was none."""
    images = np.asarray(image)
    if images.ndim not in (3, 4) or images.dtype.kind not in "biuf":
        raise DataError(
            f"{call}(): an image is an array of numbers of shape (height, width, channels), or a batch of them; got "
            f"shape {images.shape}, dtype {images.dtype}"
        )
    if 0 in images.shape[-3:]:
        raise DataError(f"{call}(): the image of shape {images.shape} has no pixels")
    return (images[None], True) if images.ndim == 3 else (images, False)
