"""Long texts made short: plans of wide structures are read by people and saved with every state."""

from collections.abc import Sequence
from typing import Any

from forebay.digests import blake2b

_MOST = 160
# Bits of integers that have fewer digits than the least limit that Python can be given.
_DECIMAL = 2048
_MOST_PARTS, _SHOWN_PARTS = 8, 4


def written(value: Any) -> str:
    """A plain value as Python writes it; a long integer, of which it refuses the decimal digits, in hexadecimal."""
    return hex(value) if type(value) is int and value.bit_length() > _DECIMAL else repr(value)


def brief(text: str) -> str:
    """The text, or its beginning."""
    return text if len(text) <= _MOST else f"{text[:_MOST]}..."


def brief_parts(parts: Sequence[str]) -> str:
    """A list of parts, or the first few of them."""
    if len(parts) <= _MOST_PARTS:
        return ", ".join(parts)
    return f"{', '.join(map(brief, parts[:_SHOWN_PARTS]))}, {len(parts) - _SHOWN_PARTS} more"


def exact(short: str, whole: str) -> str:
    """A short text to compare in place of the whole one: what it leaves out counts by its digest."""
    # Not in the form that a changed function's or array's digest has: this one may not be overlooked.
    return short if short == whole else f"{short} ~{blake2b(whole.encode(), digest_size=8).hexdigest()}"
