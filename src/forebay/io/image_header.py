"""What the first bytes of an image say about it: nothing is decoded, and nothing allocated, before that is known.

The structure of a file is followed as far as it tells whether the file is whole: PNG and GIF to their end marks.
"""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace

from forebay.errors import DataError

MAX_PIXELS = 200_000_000
"""The largest image that is decoded if nothing else is said: 600 MB of colours."""


@dataclass(frozen=True, slots=True)
class ImageHeader:
    """Format and size of an image; `channels` as stored, `bits` of each, and how many `frames` an animation has.

    Of a JPEG image, `adobe` says that it has the mark of Adobe's programs, which store inks inverted, and `size_at`
    where its size stands. `gamma` is that of a PNG image, in parts of 100,000; 0 if it tells none.
    """

    kind: str
    height: int
    width: int
    channels: int = 3
    bits: int = 8
    frames: int = 1
    adobe: bool = False
    size_at: int = 0
    gamma: int = 0


def image_header(call: str, data: bytes, max_pixels: int) -> ImageHeader:
    """The header of an image whose format is known by how it begins. DataError if there is none, or it is too large."""
    for begins, parse in _FORMATS:
        if data.startswith(begins):
            try:
                header = parse(data)
            except (struct.error, IndexError):
                raise DataError(
                    f"{call}(): the image is cut short: {len(data):,} bytes end inside its header"
                ) from None
            except ValueError as error:
                raise DataError(f"{call}(): {error}") from None
            break
    else:
        found = "no bytes at all" if not data else f"bytes that begin with {data[:8]!r}"
        raise DataError(f"{call}(): not a JPEG, PNG, GIF, BMP or WebP image: {found}")
    pixels = header.height * header.width * header.frames
    size = f"{header.width:,} x {header.height:,}" + (f" x {header.frames:,} frames" if header.frames > 1 else "")
    if not pixels:
        raise DataError(f"{call}(): the {header.kind} header tells a size of {size}, which has no pixels")
    if pixels > max_pixels:
        raise DataError(
            f"{call}(): the {header.kind} header tells a size of {size}: {pixels:,} pixels, and max_pixels is "
            f"{max_pixels:,}"
        )
    return header


# Start-of-frame markers, of which C4, C8 and CC are something else.
_FRAMES = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# Markers without a length: none at all, fill bytes, TEM, restart marks, start of image.
_BARE = {0x00, 0x01, *range(0xD0, 0xD9), 0xFF}


def _jpeg(data: bytes) -> ImageHeader:
    at = 2
    if data[at] != 0xFF:
        # The one place where TensorFlow looks for itself.
        raise ValueError("the JPEG image is damaged: no segment follows its start")
    frame: ImageHeader | None = None
    adobe = False
    while True:
        if data[at] != 0xFF:
            # Decoders pass over garbage between segments, so it does not make an image a broken one.
            at += 1
            continue
        marker = data[at + 1]
        if marker in _BARE:
            at += 1 if marker == 0xFF else 2
            continue
        if marker == 0xDA and frame is not None:
            return replace(frame, adobe=adobe)
        if marker in (0xD9, 0xDA):
            raise ValueError("the JPEG image has no frame header")
        (length,) = struct.unpack_from(">H", data, at + 2)
        # As libjpeg knows it: other segments may hold the name too, and any number of them may come before.
        adobe = adobe or (marker == 0xEE and length >= 14 and data[at + 4 : at + 9] == b"Adobe")
        if marker in _FRAMES and frame is None:
            bits, height, width, channels = struct.unpack_from(">BHHB", data, at + 4)
            frame = ImageHeader("JPEG", height, width, channels, bits, size_at=at + 5)
            if channels != 4:
                return frame
        at += 2 + length


# Channels by colour type; a palette is one of colours.
_PNG_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}


def _png(data: bytes) -> ImageHeader:
    width, height, bits, colour = struct.unpack_from(">IIBB", data, 16)
    if data[12:16] != b"IHDR" or colour not in _PNG_CHANNELS or max(width, height) >= 1 << 31:
        raise ValueError("the PNG image has no valid header")
    channels = _PNG_CHANNELS[colour]
    gamma: int | None = None
    before_colours = True
    at, size = 8, len(data)
    while True:
        if at + 12 > size:
            raise ValueError("the PNG image is cut short: its end is missing")
        (length,) = struct.unpack_from(">I", data, at)
        name = data[at + 4 : at + 8]
        if length > size - at - 12:
            raise ValueError(
                f"the PNG image is cut short: at byte {at:,}, {length:,} bytes of {name!r} should follow, "
                f"{size - at - 12:,} are there"
            )
        body = memoryview(data)[at + 4 : at + 8 + length]
        if zlib.crc32(body) != struct.unpack_from(">I", data, at + 8 + length)[0]:
            raise ValueError(f"the PNG image is damaged: at byte {at:,}, the checksum of {name!r} is wrong")
        if name == b"tRNS" and colour == 3:
            channels = 4
        elif name in (b"sRGB", b"gAMA") and before_colours:
            gamma = _gamma(name, bytes(body[4:]), gamma)
        elif name in (b"PLTE", b"IDAT"):
            before_colours = False
        elif name == b"IEND":
            return ImageHeader("PNG", height, width, channels, bits, gamma=gamma or 0)
        at += 12 + length


_SRGB = 45455


def _gamma(chunk: bytes, body: bytes, known: int | None) -> int | None:
    """What libpng takes for the gamma: the first number that makes sense, unless it contradicts that of sRGB."""
    if chunk == b"sRGB":
        return _SRGB if len(body) == 1 and body[0] < 4 else known
    told = int.from_bytes(body, "big") if len(body) == 4 else 0
    if not 16 <= told <= 625_000_000:
        return known
    near = known == _SRGB and 95_000 <= _SRGB * 100_000 / told <= 105_000
    return told if known is None or near else known


def _gif(data: bytes) -> ImageHeader:
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    at = 13 + (3 << (flags & 7) + 1 if flags & 0x80 else 0)
    frames = 0
    while data[at] != 0x3B:
        if data[at] == 0x2C:
            frames += 1
            flags = data[at + 9]
            at += 11 + (3 << (flags & 7) + 1 if flags & 0x80 else 0)
        elif data[at] == 0x21:
            at += 2
        else:
            raise ValueError(f"the GIF image is damaged: at byte {at:,}, no block begins with {data[at]:#04x}")
        while data[at]:
            at += 1 + data[at]
        at += 1
    if not frames:
        raise ValueError("the GIF image has no frames")
    return ImageHeader("GIF", height, width, 3, 8, frames)


def _bmp(data: bytes) -> ImageHeader:
    offset, header = struct.unpack_from("<II", data, 10)
    if header == 12:
        width, height, _, bits = struct.unpack_from("<HHHH", data, 18)
        compression = 0
    else:
        width, height, _, bits, compression = struct.unpack_from("<iiHHI", data, 18)
    if width < 0 or bits not in (1, 2, 4, 8, 16, 24, 32):
        raise ValueError("the BMP image has no valid header")
    height = abs(height)
    need = (width * bits + 31) // 32 * 4 * height
    # Only run-length coded images (1 and 2) may be smaller than their pixels.
    if compression not in (1, 2) and len(data) - offset < need:
        raise ValueError(f"the BMP image is cut short: {need:,} bytes of pixels from byte {offset:,} on are not there")
    return ImageHeader("BMP", height, width, 4 if bits == 32 else 1 if bits == 8 and _grey_palette(data) else 3)


def _grey_palette(data: bytes) -> bool:
    (header,) = struct.unpack_from("<I", data, 14)
    step = 3 if header == 12 else 4
    count = (struct.unpack_from("<I", data, 46)[0] if header >= 40 else 0) or 256
    colours = data[14 + header : 14 + header + min(count, 256) * step]
    return colours[::step] == colours[1::step] == colours[2::step]


def _webp(data: bytes) -> ImageHeader:
    (length,) = struct.unpack_from("<I", data, 4)
    kind = data[12:16]
    if data[8:12] != b"WEBP" or kind not in (b"VP8 ", b"VP8L", b"VP8X"):
        raise ValueError("the WebP image has no valid header")
    if length + 8 > len(data):
        raise ValueError(f"the WebP image is cut short: {length + 8:,} bytes long, {len(data):,} are there")
    if kind == b"VP8 ":
        width, height = (size & 0x3FFF for size in struct.unpack_from("<HH", data, 26))
        return ImageHeader("WebP", height, width)
    if kind == b"VP8L":
        (packed,) = struct.unpack_from("<I", data, 21)
        return ImageHeader("WebP", (packed >> 14 & 0x3FFF) + 1, (packed & 0x3FFF) + 1, 4 if packed >> 28 & 1 else 3)
    flags = data[20]
    width, height = (int.from_bytes(data[at : at + 3], "little") + 1 for at in (24, 27))
    return ImageHeader("WebP", height, width, 4 if flags & 0x10 else 3)


_FORMATS: tuple[tuple[bytes, Callable[[bytes], ImageHeader]], ...] = (
    (b"\xff\xd8", _jpeg),
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"GIF87a", _gif),
    (b"GIF89a", _gif),
    (b"BM", _bmp),
    (b"RIFF", _webp),
)
