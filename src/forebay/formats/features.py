"""Features of Examples as a text: what ``--features`` takes."""

import re

import numpy as np

from forebay.formats.format import UsageError
from forebay.io.features import Feature, FixedLenFeature, VarLenFeature

_PART = re.compile(r"(?P<name>.+)=(?P<dtype>bytes|int64|float32)(?P<shape>\[[0-9, x]*\])?", re.DOTALL)
_DTYPES: dict[str, type] = {"bytes": bytes, "int64": np.int64, "float32": np.float32}


def parse_features(text: str) -> dict[str, Feature]:
    """The features that a text names: ``name=dtype`` for one value, ``[2x3]`` behind it for a shape, ``[]`` for any.

    >>> parse_features("label=int64,box=float32[4],words=bytes[]")["box"]
    FixedLenFeature(shape=(4,), dtype=<class 'numpy.float32'>, default_value=None)
    """
    found: dict[str, Feature] = {}
    for part in re.split(r",(?![^\[]*\])", text):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise UsageError(
                f"features: {part!r} is not name=dtype, with dtype one of {', '.join(_DTYPES)} and a shape as [4] or "
                "[2x3], or [] for any number of values, behind it"
            )
        dtype, shape = _DTYPES[match["dtype"]], match["shape"]
        if shape is None:
            found[match["name"]] = FixedLenFeature((), dtype)
        elif not shape.strip("[] "):
            found[match["name"]] = VarLenFeature(dtype)
        else:
            sizes = [int(size) for size in re.split(r"[x,]", shape.strip("[]").replace(" ", "")) if size]
            found[match["name"]] = FixedLenFeature(tuple(sizes), dtype)
    return found
