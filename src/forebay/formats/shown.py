"""Values as short texts, for people to look at."""

import struct
from typing import Any

import numpy as np

from forebay.errors import DataError
from forebay.io.image_header import image_header

_LONGEST = 60
_ITEMS = 6


def shown(value: Any) -> str:
    """A value, or how it begins and how long it is."""
    if isinstance(value, bytes):
        return _bytes(value)
    if isinstance(value, str):
        return repr(value) if len(value) <= _LONGEST else f"{value[:_LONGEST]!r}... ({len(value):,} characters)"
    if isinstance(value, np.generic):
        return str(value)
    if isinstance(value, np.ndarray):
        return _array(value)
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _bytes(value: bytes) -> str:
    if len(value) <= _LONGEST:
        return repr(value)
    said = f"{len(value):,} bytes"
    try:
        header = image_header("inspect", value, 1 << 62)
        return f"{header.kind} image of {header.width} x {header.height}, {said}"
    except (DataError, struct.error):
        pass
    return f"{value[: _LONGEST // 2]!r}... ({said})"


def _array(value: Any) -> str:
    items = [shown(item) for item in value.reshape(-1)[:_ITEMS]]
    more = ", ..." if value.size > _ITEMS else ""
    size = f" {'x'.join(map(str, value.shape))}" if value.size > _ITEMS or value.ndim > 1 else ""
    dtype = "" if value.dtype.hasobject else f" {value.dtype.name}"
    return f"[{', '.join(items)}{more}]{dtype}{size}"


def size_text(size: float) -> str:
    """A number of bytes in units that are easy to read."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            return f"{size:,.0f} {unit}" if unit == "bytes" or size >= 100 else f"{size:,.1f} {unit}"
        size /= 1024
    raise AssertionError
