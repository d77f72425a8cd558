"""Long texts made short: plans of wide structures are read by people and saved with every state."""

from collections.abc import Sequence

from forebay.digests import blake2b

_MOST = 160
_MOST_PARTS, _SHOWN_PARTS = 8, 4


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
