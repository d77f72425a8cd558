"""Images from bytes to arrays. The interpreter's lock is free while simplejpeg and OpenCV decode."""

import struct
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from forebay.errors import DataError, PlanError
from forebay.io.channels import with_channels
from forebay.io.image_header import MAX_PIXELS, ImageHeader, image_header
from forebay.io.jpeg import jpeg_pixels
from forebay.io.linear_grey import counts, linear_grey

Image = NDArray[Any]

_DCT_METHODS = ("", "INTEGER_FAST", "INTEGER_ACCURATE")
_DTYPES = tuple(np.dtype(each) for each in (np.uint8, np.uint16, np.float32))


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    *,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    dct_method: str = "",
    max_pixels: int = MAX_PIXELS,
) -> Image:
    """A JPEG image as an array of shape (height, width, channels) and dtype uint8, the same as TensorFlow's.

    Needs ``forebay[image]``. Orientation tags are not looked at. CMYK images come out in red, green and blue.

    Args:
        contents: the bytes of the file.
        channels: 1 for grey, 3 for colours, 0 for what the image has.
        ratio: 2, 4 or 8 decode the image that many times smaller, which takes less time.
        fancy_upscaling: smooth colours that are stored in a lower resolution. Without, a little faster.
        try_recover_truncated: give an image that is cut short as far as it goes, instead of an error.
        dct_method: ``"INTEGER_ACCURATE"`` takes a little more time than ``"INTEGER_FAST"``, which ``""`` means.
        max_pixels: refuse larger images, before anything is allocated for them.

    >>> import forebay as fb
    >>> import simplejpeg
    >>> data = simplejpeg.encode_jpeg(np.full((40, 60, 3), 128, np.uint8))
    >>> fb.io.decode_jpeg(data).shape, fb.io.decode_jpeg(data, channels=1, ratio=4).shape
    ((40, 60, 3), (10, 15, 1))
    """
    data = read_bytes("decode_jpeg", contents)
    _one_of("decode_jpeg", "channels", channels, (0, 1, 3))
    _one_of("decode_jpeg", "ratio", ratio, (1, 2, 4, 8))
    _one_of("decode_jpeg", "dct_method", dct_method, _DCT_METHODS)
    header = _header_of("decode_jpeg", "JPEG", data, max_pixels)
    return jpeg_pixels(
        "decode_jpeg",
        data,
        header,
        channels or min(header.channels, 3),
        ratio=ratio,
        fastdct=dct_method != "INTEGER_ACCURATE",
        fastupsample=not fancy_upscaling,
        recover=try_recover_truncated,
    )


def decode_png(contents: Any, channels: int = 0, dtype: DTypeLike = np.uint8, *, max_pixels: int = MAX_PIXELS) -> Image:
    """A PNG image as an array of shape (height, width, channels), the same as TensorFlow's.

    Needs ``forebay[image]``.

    Args:
        contents: the bytes of the file. Checksums are verified.
        channels: 1 for grey, 3 for colours, 4 for colours and opacity, 0 for what the image has (2: grey and opacity).
            Grey of colours is that of their light if the file tells its gamma; colour profiles are not looked at.
        dtype: uint8, or uint16 for all there is in an image of 16 bits.
        max_pixels: refuse larger images, before anything is allocated for them.

    >>> import cv2
    >>> import forebay as fb
    >>> data = cv2.imencode(".png", np.full((2, 3, 4), 9, np.uint8))[1].tobytes()
    >>> fb.io.decode_png(data).shape, fb.io.decode_png(data, channels=1)[0, 0]
    ((2, 3, 4), array([9], dtype=uint8))
    """
    data = read_bytes("decode_png", contents)
    _one_of("decode_png", "channels", channels, (0, 1, 3, 4))
    wanted = np.dtype(dtype)
    _one_of("decode_png", "dtype", wanted, _DTYPES[:2])
    return _png("decode_png", data, _header_of("decode_png", "PNG", data, max_pixels), channels, wanted)


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: DTypeLike = np.uint8,
    expand_animations: bool = True,
    *,
    max_pixels: int = MAX_PIXELS,
) -> Image:
    """A JPEG, PNG, GIF, BMP or WebP image as an array of shape (height, width, channels).

    Needs ``forebay[image]``.

    Args:
        contents: the bytes of the file, whose format is found by how they begin.
        channels: 1 for grey, 3 for colours, 4 for colours and opacity, 0 or None for what the image has. GIF images
            have colours, and are black where nothing is to be seen.
        dtype: uint8, uint16, or float32 for values from 0 to 1.
        expand_animations: give all frames of a GIF, of shape (frames, height, width, channels), even if it has only
            one; otherwise the first.
        max_pixels: refuse larger images, and animations with more pixels together, before anything is allocated.

    >>> import cv2
    >>> import forebay as fb
    >>> data = cv2.imencode(".bmp", np.zeros((2, 3, 3), np.uint8))[1].tobytes()
    >>> fb.io.decode_image(data, dtype=np.float32).shape
    (2, 3, 3)
    """
    data = read_bytes("decode_image", contents)
    _one_of("decode_image", "channels", channels, (None, 0, 1, 3, 4))
    wanted = np.dtype(dtype)
    _one_of("decode_image", "dtype", wanted, _DTYPES)
    header = image_header("decode_image", data, max_pixels)
    if header.kind == "PNG":
        deep = np.dtype(np.uint16 if header.bits == 16 and wanted != np.uint8 else np.uint8)
        pixels = _png("decode_image", data, header, channels or 0, deep if wanted == np.float32 else wanted)
    else:
        pixels = image_pixels("decode_image", data, header, channels or 0, all_frames=expand_animations)
    if wanted == np.float32:
        return pixels / np.float32(np.iinfo(pixels.dtype).max)
    # The next power of two is the factor that TensorFlow uses too.
    return pixels if pixels.dtype == wanted else pixels.astype(wanted) * wanted.type(256)


def image_pixels(call: str, data: bytes, header: ImageHeader, channels: int, all_frames: bool = False) -> Image:
    """The pixels of an image of any format as uint8."""
    if header.kind == "JPEG":
        stored = min(header.channels, 3)
        decoded = jpeg_pixels(call, data, header, min(channels, 3) or stored)
        return with_channels(decoded, channels or decoded.shape[-1])
    if header.kind == "PNG":
        return _png(call, data, header, channels, np.dtype(np.uint8))
    if header.kind == "GIF" and all_frames:
        library = image_library(call)
        good, animation = library.imdecodeanimation(np.frombuffer(data, np.uint8))
        if not good or len(animation.frames) != header.frames:
            raise DataError(f"{call}(): the GIF image of {len(data):,} bytes is damaged")
        return np.stack([with_channels(_on_black(frame), channels or 3) for frame in animation.frames])
    if header.kind == "BMP" and header.channels == 4 and int.from_bytes(data[30:34], "little") == 0:
        return with_channels(_bmp_with_opacity(data, header), channels or 4)
    pixels = _unchanged(call, data, header)
    pixels = _on_black(pixels) if header.kind == "GIF" else _rgb(pixels, header.channels)
    return with_channels(pixels, channels or header.channels)


def _on_black(frame: Image) -> Image:
    """Colours of a GIF image; OpenCV leaves the background's where nothing is to be seen."""
    pixels = _rgb(frame, 3)
    if frame.ndim == 3 and frame.shape[-1] == 4:
        pixels[frame[..., 3] == 0] = 0
    return pixels


def _bmp_with_opacity(data: bytes, header: ImageHeader) -> Image:
    """Pixels of four bytes, the last of which OpenCV takes for padding."""
    (offset,), (height,) = struct.unpack_from("<I", data, 10), struct.unpack_from("<i", data, 22)
    shape = header.height, header.width, 4
    pixels = np.frombuffer(data, np.uint8, prod(shape), offset).reshape(shape)
    return (pixels if height < 0 else pixels[::-1])[..., [2, 1, 0, 3]]


def _png(call: str, data: bytes, header: ImageHeader, channels: int, dtype: np.dtype[Any]) -> Image:
    pixels = _rgb(_unchanged(call, data, header), header.channels)
    # First, so that grey is made of as many bits as there are.
    if channels == 1 and header.channels > 2 and counts(header.gamma):
        pixels = linear_grey(pixels[..., :3], header.gamma, dtype)
    pixels = with_channels(pixels, channels or header.channels)
    if pixels.dtype == dtype:
        return pixels
    return (pixels >> 8).astype(dtype) if dtype == np.uint8 else pixels.astype(dtype) * dtype.type(257)


def _unchanged(call: str, data: bytes, header: ImageHeader) -> Image:
    library = image_library(call)
    try:
        pixels = library.imdecode(np.frombuffer(data, np.uint8), library.IMREAD_UNCHANGED)
    except library.error as error:
        raise DataError(f"{call}(): the {header.kind} image cannot be decoded: {error}") from None
    if pixels is None:
        raise DataError(f"{call}(): the {header.kind} image of {len(data):,} bytes is damaged")
    if pixels.shape[:2] != (header.height, header.width):
        raise DataError(
            f"{call}(): the {header.kind} image is {pixels.shape[1]} x {pixels.shape[0]}, its header tells "
            f"{header.width} x {header.height}"
        )
    return pixels  # type: ignore[no-any-return]


def _rgb(pixels: Image, channels: int) -> Image:
    """OpenCV's order of channels (blue first, grey with opacity as four) turned to that of the file."""
    if pixels.ndim == 2:
        return with_channels(pixels[..., None], channels)
    if channels == 2:
        return np.ascontiguousarray(pixels[..., ::3])
    colours = pixels[..., 2::-1]
    if channels == 4 and pixels.shape[-1] == 4:
        return np.concatenate([colours, pixels[..., 3:]], axis=-1)
    return with_channels(np.ascontiguousarray(colours), channels)


def _header_of(call: str, kind: str, data: bytes, max_pixels: int) -> ImageHeader:
    header = image_header(call, data, max_pixels)
    if header.kind != kind:
        raise DataError(f"{call}(): not a {kind} but a {header.kind} image; decode_image() takes both")
    return header


def read_bytes(call: str, contents: Any) -> bytes:
    """The bytes that a user hands in."""
    if isinstance(contents, bytes):
        return contents
    if isinstance(contents, (bytearray, memoryview)):
        return bytes(contents)
    if isinstance(contents, np.ndarray) and contents.dtype == np.uint8 and contents.ndim == 1:
        return contents.tobytes()
    raise DataError(f"{call}(): contents must be bytes, got {type(contents).__name__}; read_file() reads a path")


def _one_of(call: str, name: str, value: Any, values: tuple[Any, ...]) -> None:
    if isinstance(value, bool) or value not in values:
        shown = ", ".join(str(each) if isinstance(each, np.dtype) else repr(each) for each in values)
        raise PlanError(f"{call}({name}={value!s}): {name} must be one of {shown}")


def image_library(call: str) -> Any:
    """OpenCV, imported when it is first needed."""
    try:
        import cv2
    except ImportError as error:
        raise PlanError(f"{call}() needs OpenCV: pip install 'forebay[image]'") from error
    return cv2
