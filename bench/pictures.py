"""Folders of JPEG files for the image workloads: made once, kept where temporary files are kept."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from bench.pipeline import WrongData

SIZE = 224
BATCH = 32


def picture(height: int, width: int, seed: int) -> np.ndarray[Any, Any]:
    """Noise of several scales on a gradient: large shapes with strong colours, and finer ones that are fainter."""
    import cv2

    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    image = np.stack([100 + 60 * y / height + slant * x / width for slant in (40, 10, -40)], axis=-1)
    for shapes, strength in ((6, 40), (24, 20), (96, 8), (384, 3)):
        rows, columns = max(2, shapes * height // 500), max(2, shapes * width // 500)
        if min(rows, columns) < min(height, width):
            noise = rng.normal(0, strength, (min(rows, height), min(columns, width), 3)).astype(np.float32)
            image += cv2.resize(noise, (width, height), interpolation=cv2.INTER_CUBIC)
    image += rng.normal(0, 1.5, image.shape).astype(np.float32)
    return np.clip(image, 0, 255).astype(np.uint8)


def folder(name: str, height: int, width: int, different: int, rows: int, scale: float = 1) -> list[str]:
    """The paths of so many files, of which `different` differ. Sizes vary a little."""
    import simplejpeg

    where = Path(tempfile.gettempdir()) / f"forebay-bench-{name}-{os.getuid()}"
    if len(list(where.glob("*.jpg"))) < rows:
        made = Path(tempfile.mkdtemp(prefix=f"forebay-bench-{name}-"))
        data = []
        for seed in range(min(different, rows)):
            tall, wide = height + 7 * seed % 40, width + 11 * seed % 60
            pixels = picture(int(tall / scale), int(wide / scale), seed)
            if scale > 1:
                pixels = _enlarged(pixels, tall, wide, seed)
            data.append(simplejpeg.encode_jpeg(pixels, quality=90, colorsubsampling="420"))
        for row in range(rows):
            (made / f"{row:05}.jpg").write_bytes(data[row % len(data)])
        shutil.rmtree(where, ignore_errors=True)
        made.rename(where)
    return sorted(str(path) for path in where.glob("*.jpg"))[:rows]


def _enlarged(pixels: np.ndarray[Any, Any], height: int, width: int, seed: int) -> np.ndarray[Any, Any]:
    """As a lens with more pixels behind it sees the same: no finer, but with the sensor's noise on every pixel."""
    import cv2

    large = cv2.resize(pixels, (width, height), interpolation=cv2.INTER_CUBIC).astype(np.float32)
    large += np.random.default_rng(seed).normal(0, 1.5, large.shape).astype(np.float32)
    return np.clip(large, 0, 255).astype(np.uint8)


def exact(path: str) -> np.ndarray[Any, Any]:
    """The image decoded whole, and resized."""
    import forebay as fb

    return fb.image.decode_and_resize(fb.io.read_file(path), (SIZE, SIZE), exact=True, dtype=np.float32)


def psnr(image: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> float:
    """Decibels."""
    return float(10 * np.log10(255**2 / max(float(np.mean((image.astype(np.float64) - expected) ** 2)), 1e-9)))


def pictures(paths: list[str], rows: int, batches: Iterable[Any], least: float = 30) -> None:
    """All images in order, each close to what decoding it whole gives."""
    at = 0
    for batch in batches:
        for image in np.asarray(batch):
            found = psnr(image, exact(paths[at]))
            if image.shape != (SIZE, SIZE, 3) or found < least:
                raise WrongData(f"image {at} has shape {image.shape} and a PSNR of {found:.1f} dB")
            at += 1
    if at != rows:
        raise WrongData(f"{at} images, expected {rows}")
