"""An element in a few words, for errors: it leads to the data where its number, as after a shuffle, does not."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from forebay.block import Block, Structure, flatten

_MOST = 120
_MOST_LEAF = 100


def shown(element: Any) -> str | None:
    """The element's text, numbers and bytes as far as they are short; None if there are none. Never raises."""
    try:
        return _text(*flatten(element))
    except Exception:
        # Objects of the user's may do anything when they are looked at, and the error itself is more important.
        return None


def shown_row(block: Block, row: int) -> str | None:
    """The same of one row of a block."""
    try:
        return _text([column.slice(row, row + 1).rows()[0] for column in block.columns], block.structure)
    except Exception:
        return None


def _text(leaves: list[Any], structure: Structure) -> str | None:
    texts = [_leaf(leaf) for leaf in leaves]
    if not any(says for _, says in texts):
        return None
    text = _whole(structure, iter([text for text, _ in texts]))
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."


def _leaf(leaf: Any) -> tuple[str, bool]:
    """What to write for a leaf, and whether that says which one it is."""
    if isinstance(leaf, np.generic) and leaf.dtype.kind in "biufc":
        leaf = leaf.item()
    if isinstance(leaf, (bool, int, float, complex)):
        return repr(leaf), True
    if isinstance(leaf, (np.datetime64, np.timedelta64)):
        return str(leaf), True
    if isinstance(leaf, str):
        # Of a long path, the end says more.
        return repr(leaf if len(leaf) <= _MOST_LEAF else f"{leaf[:20]}...{leaf[23 - _MOST_LEAF :]}"), True
    if isinstance(leaf, bytes):
        return (repr(leaf), True) if len(leaf) <= _MOST_LEAF else (f"{len(leaf):,} bytes", False)
    if isinstance(leaf, np.ndarray):
        return f"{leaf.dtype.name}{list(leaf.shape)}", False
    return ("None" if leaf is None else type(leaf).__name__), False


def _whole(structure: Structure, leaves: Iterator[str]) -> str:
    if structure.is_leaf:
        return next(leaves)
    parts = [_whole(child, leaves) for child in structure.children]
    if structure.kind is dict:
        return f"{{{', '.join(f'{key!r}: {part}' for key, part in zip(structure.keys, parts))}}}"
    if structure.keys:
        return f"({', '.join(f'{key}={part}' for key, part in zip(structure.keys, parts))})"
    return f"({', '.join(parts)}{',' * (len(parts) == 1)})"
