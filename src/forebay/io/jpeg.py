"""JPEG images from bytes to pixels, accepted and refused as TensorFlow does."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.errors import DataError, PlanError
from forebay.io.channels import with_channels
from forebay.io.image_header import ImageHeader

# What libjpeg warns of before it decodes an image to its end, by how it says so. After anything else it stops, and the
# pixels are what was in memory; if there was a warning before, simplejpeg takes that for a warning too.
_WARNINGS = (
    "Corrupt JPEG data: ",
    "Inconsistent progression sequence",
    "Invalid SOS parameters for sequential JPEG",
    "Premature end of JPEG file",
    "Unknown Adobe color transform code",
    "Warning: ",
)
# libjpeg makes up an end for an image that has none. This is an error wherever a decoder gets to it, and longer than
# the longest segment, so that no length leads beyond.
_NO_END = b"\xff\xd8" * (1 << 15 | 8)
# Ahead of the pixels, these mean nothing: bytes that only look like a mark, fill bytes, TEM, restart marks.
_NO_SEGMENT = (0x00, 0x01, 0xFF, *range(0xD0, 0xD8))
# Start and end of an image, and where pixels begin.
_NOT_AHEAD = (0xD8, 0xD9, 0xDA)
# From this on, every share of a size that libjpeg can decode to is another size.
_DISTINCT = 8


def jpeg_pixels(
    call: str,
    data: bytes,
    header: ImageHeader,
    channels: int,
    *,
    ratio: int = 1,
    fastdct: bool = True,
    fastupsample: bool = False,
    recover: bool = False,
    buffer: Any = None,
) -> NDArray[Any]:
    """The pixels of a JPEG image, `ratio` times smaller. `buffer` is memory that they may be in.

    With `recover`, what is cut short comes out as far as it goes.
    """
    library = jpeg_library(call)
    height, width = -(-header.height // ratio), -(-header.width // ratio)
    least = height, width
    if ratio > 1 and max(header.height, header.width) < _DISTINCT:
        # simplejpeg is told sizes. Such an image is a single block of pixels, which is this large in any case.
        size = _DISTINCT.to_bytes(2, "big")
        data = data[: header.size_at] + size + size + data[header.size_at + 4 :]
        least, buffer = (_DISTINCT // ratio, _DISTINCT // ratio), None
    ink = header.channels == 4
    settings: dict[str, Any] = {
        "colorspace": "CMYK" if ink else "GRAY" if channels == 1 else "RGB",
        "fastdct": fastdct,
        "fastupsample": fastupsample,
        "buffer": buffer,
    }
    if ratio > 1:
        settings |= {"min_height": least[0], "min_width": least[1], "min_factor": ratio}
    try:
        pixels = library.decode_jpeg(data, **settings)
    except ValueError as error:
        followed = _tidy(data, header.channels) + (b"" if recover else _NO_END)
        pixels = _despite_warnings(library, followed, settings)
        if pixels is None:
            reason = str(error).strip().replace("\n", " ") or "no reason given"
            raise DataError(
                f"{call}(): the JPEG image of {len(data):,} bytes is cut short or damaged: {reason}"
            ) from None
    if pixels.shape[:2] != (height, width):
        pixels = np.ascontiguousarray(pixels[:height, :width])
    if ink:
        # Adobe's programs store inks inverted.
        inks = pixels.astype(np.uint16) if header.adobe else 255 - pixels.astype(np.uint16)
        pixels = with_channels((inks[..., :3] * inks[..., 3:] // 255).astype(np.uint8), channels)
    return pixels  # type: ignore[no-any-return]


def _despite_warnings(library: Any, data: bytes, settings: dict[str, Any]) -> Any:
    """An image with bytes too many, odd markers or bits that mean nothing, which TensorFlow's decoder passes over too.

    None if it is not decoded to its end.
    """
    try:
        library.decode_jpeg(data, **settings)
    except ValueError as error:
        # An error is the last thing that libjpeg has to say.
        if not str(error).startswith(_WARNINGS):
            return None
    try:
        return library.decode_jpeg(data, strict=False, **settings)
    except ValueError:
        return None


def _tidy(data: bytes, channels: int) -> bytes:
    """The image without what libjpeg would warn of ahead of its pixels, since simplejpeg refuses such an image."""
    tidy = bytearray(data[:2])
    at = 2
    while at + 4 <= len(data):
        marker = data[at + 1]
        if data[at] != 0xFF or marker in _NO_SEGMENT:
            at += 2 if data[at] == 0xFF and marker != 0xFF else 1
            continue
        if marker in _NOT_AHEAD:
            break
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        segment = bytearray(data[at:end])
        if marker == 0xE0 and segment[4:9] == b"JFIF\0" and len(segment) >= 16:
            segment[9] = 1  # Of other revisions than the first, nothing else is read either.
        elif marker == 0xEE and segment[4:9] == b"Adobe" and len(segment) >= 16:
            # What libjpeg takes unknown numbers for.
            usual = 2 if channels == 4 else 1
            segment[15] = segment[15] if segment[15] in (0, usual) else usual
        tidy += segment
        at = max(end, at + 2)
    return bytes(tidy) + data[at:]


def jpeg_library(call: str) -> Any:
    """simplejpeg, imported when it is first needed."""
    try:
        import simplejpeg
    except ImportError as error:
        raise PlanError(f"{call}() needs simplejpeg: pip install 'forebay[image]'") from error
    return simplejpeg
