"""Images from bytes to one size, decoded no larger than that takes."""

import threading
from math import prod
from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forebay._native import JpegPlanes
from forebay.errors import PlanError
from forebay.image.resize import METHODS, checked_size, fitting, resize
from forebay.image.weights import half_taps, taps
from forebay.io.column_function import FillsArray
from forebay.io.decode import image_pixels, read_bytes
from forebay.io.image_header import MAX_PIXELS, ImageHeader, image_header
from forebay.io.jpeg import jpeg_pixels

Image = NDArray[Any]

# Images that become smaller than this share of their size do not show how colours were spread over pixels.
_SMALLER = 1.5
# Pages of memory that a decoder writes to for the first time cost as much as a good part of its work.
_MOST_KEPT = 64 << 20
_kept = threading.local()
# What is made without anything in between.
_DIRECT = (np.dtype(np.uint8), np.dtype(np.float32))


class DecodeAndResize(FillsArray):
    """``decode_and_resize`` with its settings, as a function for ``map``; see there.

    Images are written one behind another into one array, of which batches are views as long as they are no larger
    than a block, about 1 MiB.

    >>> import forebay as fb
    >>> import simplejpeg
    >>> data = [simplejpeg.encode_jpeg(np.full((40, 60, 3), i, np.uint8)) for i in range(4)]
    >>> batch, = fb.Dataset.from_tensor_slices(data).map(fb.image.DecodeAndResize((8, 8))).batch(4)
    >>> batch.shape, batch.dtype
    ((4, 8, 8, 3), dtype('uint8'))
    """

    text = False

    def __init__(
        self,
        size: tuple[int, int],
        method: str = "bilinear",
        *,
        channels: int = 3,
        preserve_aspect_ratio: bool = False,
        antialias: bool = False,
        exact: bool = False,
        dtype: DTypeLike = np.uint8,
        max_pixels: int = MAX_PIXELS,
    ) -> None:
        self.size = checked_size("decode_and_resize", size)
        if method not in METHODS:
            raise PlanError(f"decode_and_resize(method={method!r}): method must be one of {', '.join(METHODS)}")
        if channels not in (1, 3, 4):
            raise PlanError(f"decode_and_resize(channels={channels!r}): channels must be 1, 3 or 4")
        self.method = method
        self.channels = channels
        self.preserve_aspect_ratio = preserve_aspect_ratio
        self.antialias = antialias
        # Nearest is for images whose values are names of things, which have no mean.
        self.exact = exact or method == "nearest"
        self.dtype = np.dtype(dtype)
        self.max_pixels = max_pixels
        self.shape = None if preserve_aspect_ratio else (*self.size, channels)

    def make(self, value: Any, out: Any = None) -> Image:
        """The image, in `out` if that is given."""
        data = read_bytes("decode_and_resize", value)
        header = image_header("decode_and_resize", data, self.max_pixels)
        size = self.size
        if self.preserve_aspect_ratio:
            # Of the image as it is stored: a smaller one is not of quite the same proportions.
            size = fitting(header.height, header.width, *size)
        if header.kind != "JPEG" or self.channels == 4:
            pixels = image_pixels("decode_and_resize", data, header, self.channels)
        else:
            shrinks = min(header.height / size[0], header.width / size[1])
            if not self.exact and shrinks >= _SMALLER and self.dtype in _DIRECT:
                made = self._from_planes(data, header, size, _ratio(shrinks), out)
                if made is not None:
                    return made
            pixels = self._pixels(data, header, shrinks)
        return resize(pixels, size, self.method, antialias=self.antialias, dtype=self.dtype, out=out)

    def _from_planes(
        self, data: bytes, header: ImageHeader, size: tuple[int, int], ratio: int, out: Any
    ) -> Image | None:
        """The image from brightness and colours that were resized apart; None if it is no common kind of JPEG."""
        planes = _planes(header.height * header.width // ratio**2 * header.channels)
        found = planes.decode(data, ratio, self.channels == 1, self.max_pixels)
        if found is None:
            return None
        whole, colours = found
        method, antialias = self.method, self.antialias
        rows, columns = (taps(method, antialias, old, new) for old, new in zip(whole, size, strict=True))
        colour_rows, colour_columns = (
            (taps if stored == old else half_taps)(method, antialias, old, new)
            for old, stored, new in zip(whole, colours, size, strict=True)
        )
        made: Image = np.empty((*size, self.channels), self.dtype) if out is None else out
        planes.resize(*rows, *columns, *colour_rows, *colour_columns, made)
        return made

    def _pixels(self, data: bytes, header: ImageHeader, shrinks: float) -> Image:
        ratio = 1 if self.exact else _ratio(shrinks)
        smaller = -(-header.height // ratio), -(-header.width // ratio)
        return jpeg_pixels(
            "decode_and_resize",
            data,
            header,
            self.channels,
            ratio=ratio,
            fastupsample=not self.exact and shrinks >= _SMALLER,
            buffer=_buffer(prod(smaller) * max(self.channels, header.channels)),
        )


def _ratio(shrinks: float) -> int:
    """How many times smaller a JPEG image is decoded that is to shrink so much."""
    return next((ratio for ratio in (8, 4, 2) if shrinks >= ratio), 1)


def _planes(size: int) -> JpegPlanes:
    """The decoder of this thread, with the memory of its last image; a new one for an image too large to keep."""
    if size > _MOST_KEPT:
        return JpegPlanes()
    planes: JpegPlanes | None = getattr(_kept, "planes", None)
    if planes is None:
        planes = _kept.planes = JpegPlanes()
    return planes


def _buffer(size: int) -> Any:
    """Memory of this thread that the last image was decoded to; None for images that are too large to keep."""
    if size > _MOST_KEPT:
        return None
    memory = getattr(_kept, "memory", None)
    if memory is None or len(memory) < size:
        memory = _kept.memory = np.empty(size, np.uint8)
    return memory[:size]


class Settings(TypedDict, total=False):
    """How ``decode_and_resize`` and ``DecodeAndResize`` work."""

    channels: int
    preserve_aspect_ratio: bool
    antialias: bool
    exact: bool
    dtype: DTypeLike
    max_pixels: int


def decode_and_resize(
    contents: Any, size: tuple[int, int], method: str = "bilinear", **settings: Unpack[Settings]
) -> Image:
    """An encoded image in another size. A JPEG image is decoded no larger than that takes.

    JPEG images can be decoded 2, 4 or 8 times smaller in less time. The smallest that is not smaller than `size` is
    used, and resized from there. Where an image becomes at least one and a half times smaller, brightness and colours
    are resized apart, as they are stored. What comes out differs a little from what resizing the whole image gives,
    mostly in details too fine for the new size. It is the same every time, and stays within 0 to 255.
    ``DecodeAndResize`` does the same faster for many images.

    Args:
        contents: the bytes of a JPEG, PNG, GIF, BMP or WebP file. Of an animation, the first frame counts.
        size: the new height and width.
        method: as for ``resize``. With ``"nearest"``, images are always decoded whole.
        channels: 1 for grey, 3 for colours, 4 for colours and opacity.
        preserve_aspect_ratio: `size` is the most that both sides may be; the image keeps its proportions.
        antialias: as for ``resize``.
        exact: decode images whole: the same as ``resize(decode_image(contents), size)``.
        dtype: uint8 (rounded), or any other that ``resize`` takes.
        max_pixels: refuse larger images, before anything is allocated for them.

    >>> import forebay as fb
    >>> import simplejpeg
    >>> data = simplejpeg.encode_jpeg(np.full((300, 400, 3), 77, np.uint8))
    >>> fb.image.decode_and_resize(data, (64, 64)).mean()
    np.float64(77.0)
    """
    return DecodeAndResize(size, method, **settings).make(contents)
