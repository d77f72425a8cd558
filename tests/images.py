"""Images for tests, made without a network or a camera."""

from __future__ import annotations

import io
import struct
import zlib
from typing import Any

import numpy as np
import PIL.Image


def picture(height: int, width: int, seed: int = 0) -> np.ndarray[Any, Any]:
    """Colours that change gently from place to place, with a little noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width]
    large = max(1, height / 60)
    waves = [np.sin((y / rng.uniform(5, 30) + x / rng.uniform(5, 30)) / large) for _ in range(3)]
    values = 128 + 90 * np.stack(waves, axis=-1) + rng.normal(0, 4, (height, width, 3))
    return np.clip(values, 0, 255).astype(np.uint8)


def encoded(pixels: np.ndarray[Any, Any], form: str, mode: str | None = None, **settings: Any) -> bytes:
    image = PIL.Image.fromarray(pixels)
    if mode == "P":
        image = image.quantize(16)
    elif mode is not None:
        image = image.convert(mode)
    if mode in ("LA", "RGBA"):
        image.putalpha(PIL.Image.fromarray(np.ascontiguousarray(pixels[:, :, 1])))
    buffer = io.BytesIO()
    image.save(buffer, form, **settings)
    return buffer.getvalue()


def jpeg(height: int = 50, width: int = 70, seed: int = 0, **settings: Any) -> bytes:
    return encoded(picture(height, width, seed), "JPEG", quality=90, **settings)


def gif(frames: int) -> bytes:
    images = [PIL.Image.fromarray(picture(12, 9, seed)).quantize(32) for seed in range(frames)]
    buffer = io.BytesIO()
    images[0].save(buffer, "GIF", save_all=True, append_images=images[1:])
    return buffer.getvalue()


def png_of(width: int, height: int, data: bytes, bits: int = 8, colour: int = 2) -> bytes:
    """A PNG file that says and holds what it is told to."""
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def png_with(data: bytes, *chunks: tuple[bytes, bytes]) -> bytes:
    """A PNG file with more chunks behind its header."""
    return data[:33] + b"".join(_chunk(*each) for each in chunks) + data[33:]


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def deep_png(pixels: np.ndarray[Any, Any]) -> bytes:
    """A PNG file of 16 bits for each channel: grey, or colours."""
    height, width, channels = pixels.shape
    rows = pixels.astype(">u2").reshape(height, -1)
    return png_of(width, height, zlib.compress(b"".join(b"\0" + row.tobytes() for row in rows)), 16, channels - 1)


def psnr(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """How alike two images are, in decibels."""
    return float(10 * np.log10(255**2 / max(np.mean((a.astype(float) - b.astype(float)) ** 2), 1e-12)))
