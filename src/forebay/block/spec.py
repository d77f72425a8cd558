"""What a leaf of an element looks like, before there is one."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from forebay.errors import PlanError

BYTES = np.dtype("S")
TEXT = np.dtype("U")
OBJECT = np.dtype("O")


@dataclass(frozen=True, slots=True, init=False)
class TensorSpec:
    """Shape and dtype of one leaf. ``None`` in the shape stands for a size that differs or is not known.

    Variable-length bytes and text have the dtypes ``np.dtype("S")`` and ``np.dtype("U")``; any other
    object, ``None`` included, has ``np.dtype("O")``. A shape of ``None`` means that not even the rank is known.

    >>> TensorSpec((None, 3), np.float32)
    TensorSpec(shape=(None, 3), dtype=float32)
    """

    shape: tuple[int | None, ...] | None
    dtype: np.dtype[Any]

    def __init__(self, shape: Any = (), dtype: DTypeLike = np.float64) -> None:
        if shape is not None:
            try:
                shape = tuple(None if size is None else int(size) for size in shape)
            except (TypeError, ValueError):
                raise PlanError(f"TensorSpec(shape={shape!r}): a shape is a sequence of sizes") from None
            if any(size is not None and size < 0 for size in shape):
                raise PlanError(f"TensorSpec(shape={shape}): sizes cannot be negative, use None for unknown")
        object.__setattr__(self, "shape", shape)
        object.__setattr__(self, "dtype", plain_dtype(as_dtype("TensorSpec", "dtype", dtype)))

    def accepts(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> bool:
        """Whether an array of that shape and dtype fits."""
        if plain_dtype(dtype) != self.dtype:
            return False
        if self.shape is None:
            return True
        return len(shape) == len(self.shape) and all(
            want in (None, have) for want, have in zip(self.shape, shape, strict=True)
        )

    def with_leading(self, size: int | None) -> "TensorSpec":
        """The spec of a batch of such leaves."""
        return TensorSpec(None if self.shape is None else (size, *self.shape), self.dtype)

    def without_leading(self) -> "TensorSpec | None":
        """The spec of a row of such leaves; None for a scalar, which has no rows."""
        if self.shape is None:
            return self
        return TensorSpec(self.shape[1:], self.dtype) if self.shape else None

    def __repr__(self) -> str:
        names = {"S": "bytes", "U": "str", "O": "object"}
        return f"TensorSpec(shape={self.shape}, dtype={names.get(self.dtype.char, self.dtype.name)})"


class NoneSpec(TensorSpec):
    """A leaf that is None: a batch of None is None, and so is a row of it.

    >>> NoneSpec()
    NoneSpec()
    """

    def __init__(self) -> None:
        super().__init__((), OBJECT)

    def with_leading(self, size: int | None) -> "NoneSpec":
        """Still None."""
        return self

    def without_leading(self) -> "NoneSpec":
        """Still None."""
        return self

    def __repr__(self) -> str:
        return "NoneSpec()"


def as_dtype(call: str, name: str, value: DTypeLike) -> np.dtype[Any]:
    """The dtype that a user means; PlanError if it is none."""
    try:
        return np.dtype(value)
    except TypeError as error:
        raise PlanError(f"{call}({name}={value!r}): {error}") from None


def plain_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype without what does not matter to a reader: byte order and the width of strings."""
    if dtype.kind == "S":
        return BYTES
    if dtype.kind in "UT":
        return TEXT
    return dtype.newbyteorder("=") if not dtype.isnative else dtype
