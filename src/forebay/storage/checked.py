"""Checksums of what is on disk: CRC-32C, which a kernel works out as the bytes pass by.

The kernel reads and sums in one call: two would give up the interpreter and wait for it twice as often, which beside
another thread costs as much as the bytes do. With zlib's CRC-32, reading from the page cache took twice as long as
without.
"""

from typing import Any

from forebay._native import crc32c, read_checked

__all__ = ["checksum", "checksum_text", "read_checked"]


def checksum(*parts: Any, before: int = 0) -> int:
    """The checksum of some bytes, one part behind another, and all of them behind those whose checksum is `before`."""
    for part in parts:
        before = crc32c(part, before)
    return before


def checksum_text(value: int) -> str:
    """A checksum as manifests have it."""
    return f"{value:08x}"
