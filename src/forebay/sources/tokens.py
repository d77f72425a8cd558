"""Tokens of language models in flat files: ``from_tokens``."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from forebay.block.spec import as_dtype
from forebay.errors import FileError, PlanError
from forebay.plan.check import whole_number
from forebay.plan.node import Node
from forebay.sources.slices import slices_of
from forebay.storage.files import is_url, open_file


def token_windows(
    paths: Sequence[str], dtype: Any, length: Any, stride: Any, offset: Any, label: str | None, where: str
) -> list[Node]:
    """A source for each file that holds a window: rows of a mapped file, read by number as those of any other."""
    call = "from_tokens"
    kind = as_dtype(call, "dtype", dtype)
    if kind.kind not in "iu":
        raise PlanError(f"{call}(dtype={kind}): tokens are whole numbers")
    length = whole_number(call, "length", length, 1)
    stride = length if stride is None else whole_number(call, "stride", stride, 1)
    offset = whole_number(call, "offset", offset, 0)
    found: list[Node] = []
    for path in paths:
        if is_url(path):
            raise PlanError(f"{call}({path!r}): only local files can be mapped")
        # Says what is wrong with a file in the words of all other readers.
        file = open_file(path)
        size = file.size - offset
        file.close()
        if size < 0 or size % kind.itemsize:
            raise FileError(
                path,
                f"its {file.size:,} bytes{f' from {offset:,} on' if offset else ''} are no whole number of "
                f"{kind.name} tokens of {kind.itemsize} bytes",
            )
        count = (size // kind.itemsize - length) // stride + 1
        if size // kind.itemsize >= length:
            tokens = np.memmap(os.path.abspath(path), kind, "r", offset)
            strides = (stride * kind.itemsize, kind.itemsize)
            found.append(slices_of(np.ndarray((count, length), kind, tokens, 0, strides), label, where))
    if not found:
        found.append(slices_of(np.empty((0, length), kind), label, where))
    return found
