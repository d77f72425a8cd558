"""One leaf of many rows, in one piece of memory."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block.spec import TensorSpec

Indices = NDArray[np.int64]


class RowError(Exception):
    """A row that a column cannot hold or fold. Operators turn it into an error that says where and what.

    `row` counts within the column; `text` describes the fault without naming the leaf.
    """

    def __init__(self, row: int, text: str) -> None:
        super().__init__(text)
        self.row = row
        self.text = text


class MissingError(RowError):
    """A row that is None beside others that are not, or the other way round."""


class Column(ABC):
    """Rows of one leaf. Columns are immutable; slicing gives views."""

    __slots__ = ()

    stays = False
    """Whether rows stay where they are when columns are joined or put in another order: only their places move."""

    @abstractmethod
    def __len__(self) -> int: ...

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes that these rows take, not counting what else lies in the same memory."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype[Any]:
        """The dtype as ``TensorSpec`` tells it."""

    @property
    def value_dtype(self) -> np.dtype[Any]:
        """The dtype of the values that are not None; object if they are objects, or none of them says one."""
        return self.dtype

    @property
    @abstractmethod
    def spec(self) -> TensorSpec:
        """What one row looks like."""

    @abstractmethod
    def buffers(self) -> tuple[NDArray[Any], ...]:
        """The arrays that hold the rows, whatever else may lie in them."""

    @abstractmethod
    def slice(self, start: int, stop: int) -> "Column":
        """Rows start to stop, as a view."""

    @abstractmethod
    def take(self, indices: Indices) -> "Column":
        """The rows at these indices, in memory of their own."""

    @abstractmethod
    def rows(self) -> list[Any]:
        """One value per row. Arrays among them are views: take them from a ``private`` column to hand them out."""

    @abstractmethod
    def private(self) -> "Column":
        """The same rows in memory that nobody else reads, so that a user may write into it."""

    @abstractmethod
    def shared(self) -> "Column":
        """The same rows, marked as read by others too."""

    @property
    @abstractmethod
    def rows_alias(self) -> bool:
        """Whether writing into a row that ``rows`` gives out would write into this column."""

    @abstractmethod
    def unfold(self) -> tuple["Column", Indices]:
        """The first axis of every row becomes rows of its own; also how many each row gave."""

    @abstractmethod
    def join(self, others: "list[Column]") -> "Column | None":
        """This column and columns of the same class behind it, or None if they do not fit together."""
