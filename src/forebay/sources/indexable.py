"""Objects with a length and items by number: ``from_indexable``, and datasets of other libraries that are such."""

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from forebay.block import Block, Indices, RowBuilder
from forebay.block.leaf import detached
from forebay.errors import DataError, ForebayError, PlanError
from forebay.plan.node import Build, Node
from forebay.run import Access, Operator, ReadRows, Setup


class Item:
    """The function that ``map`` calls with an item's number."""

    def __init__(self, items: Any, convert: Callable[[Any], Any] | None) -> None:
        self._items = items
        self._convert = convert

    def __call__(self, number: Any) -> Any:
        """The item."""
        item = self._items[int(number)]
        return item if self._convert is None else self._convert(item)


@dataclass(frozen=True, eq=False, kw_only=True)
class ManyItems(Node):
    """An object that gives many items at once, by ``__getitems__``."""

    items: Any = field(repr=False)
    convert: Callable[[Any], Any] | None = None
    call: str = "from_indexable"

    kind = "from_indexable"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", self.call)

    def cardinality(self) -> int:
        """As it says."""
        return len(self.items)

    def access(self) -> Access:
        """By number."""
        return _Items(self)

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Read by number."""
        return ReadRows(self.site, self.access(), setup)

    def describe(self) -> str:
        """What it is."""
        return f"{self.kind}({type(self.items).__name__} of {len(self.items)})"

    def signature(self) -> str:
        """The same: what it holds is its own business."""
        return self.describe()


class _Items(Access):
    def __init__(self, node: ManyItems) -> None:
        super().__init__(node.cardinality())
        self._node = node
        self._builder = RowBuilder()

    def gather(self, indices: Indices, epoch: int) -> Block:
        """In one call."""
        node, first = self._node, int(indices[0])
        try:
            items = list(node.items.__getitems__(indices.tolist()))
            if node.convert is not None:
                items = [node.convert(item) for item in items]
        except ForebayError:
            raise
        except Exception as error:
            raise node.site.function_error(first, f"{type(node.items).__name__}.__getitems__", error) from error
        if len(items) != len(indices):
            raise DataError(f"{node.site}: __getitems__ gave {len(items)} items for {len(indices)} numbers")
        block, fault = self._builder.build([detached(item) for item in items])
        if fault is not None or block is None:
            row, text = (0, "there is none") if fault is None else (fault.row, fault.text)
            raise node.site.data_error(int(indices[row]), text)
        return block


def length_of(call: str, items: Any) -> int:
    """How many items there are. PlanError if it does not say, or has none by number."""
    if not hasattr(items, "__getitem__") and not hasattr(items, "__getitems__"):
        raise PlanError(f"{call}({type(items).__name__}): it has no items by number (__getitem__)")
    try:
        return len(items)
    except TypeError:
        raise PlanError(
            f"{call}({type(items).__name__}): it does not tell how many items it has (__len__); "
            "from_generator reads what can only be iterated over"
        ) from None


def tensors_as_arrays(item: Any) -> Any:
    """torch's tensors as NumPy's arrays, in the same memory where that is the processor's."""
    # Who has a tensor has imported torch; who has none should not have to.
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(item, torch.Tensor):
        array = item.detach().cpu().resolve_conj().resolve_neg().numpy()
        return array if array.ndim else array[()]
    if isinstance(item, dict):
        return {key: tensors_as_arrays(value) for key, value in item.items()}
    if isinstance(item, tuple):
        parts = [tensors_as_arrays(value) for value in item]
        return type(item)(*parts) if hasattr(item, "_fields") else tuple(parts)
    if isinstance(item, list):
        return [tensors_as_arrays(value) for value in item]
    return item
