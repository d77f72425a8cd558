"""Elements from a Python generator: ``from_generator``."""

import copy
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from forebay.block import START, Block, Cursor, RowBuilder, RowError, TensorSpec, flatten
from forebay.block.leaf import element_bytes
from forebay.block.shelf import Shelf, keeper
from forebay.block.spec import BYTES, OBJECT, TEXT
from forebay.errors import ForebayError, PlanError
from forebay.plan.fingerprint import function_name
from forebay.plan.node import UNKNOWN, Build, Node
from forebay.run import Operator, Pace, Setup
from forebay.run.pace import ENOUGH_BLOCKS

_OTHERS = frozenset({"TensorSpec", "ShapeDtypeStruct"})
"""Classes of other libraries that have a shape and a dtype and mean the same."""


@dataclass(slots=True)
class _Aside:
    """An element that did not fit into a block, with what keeps those behind it."""

    element: Any
    keep: Callable[[Any], Any]
    shelf: Shelf | None
    cursor: Cursor = START


@dataclass(frozen=True, eq=False, kw_only=True)
class Generator(Node):
    """``Dataset.from_generator``. The function is called anew for every iteration."""

    generator: Callable[..., Any]
    args: tuple[Any, ...] = ()
    output_signature: Any = None

    kind = "from_generator"

    def __post_init__(self) -> None:
        if not callable(self.generator):
            raise PlanError(
                f"from_generator(generator={self.generator!r}): generator must be a function that returns an iterator, "
                "so that every iteration can begin anew: from_generator(lambda: ...)"
            )
        if not isinstance(self.args, (tuple, list)):
            raise PlanError(f"from_generator(args={self.args!r}): args must be a tuple of arguments")
        if self.output_signature is not None:
            leaves, structure = flatten(self.output_signature, (TensorSpec,))
            object.__setattr__(self, "output_signature", structure.unflatten([_spec(leaf) for leaf in leaves]))

    def cardinality(self) -> int:
        """Nobody knows before it has ended."""
        return UNKNOWN

    def spec(self, *inputs: Any) -> Any | None:
        """What the user declared."""
        return self.output_signature

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Run the generator."""
        return _RunGenerator(self, setup)


class _RunGenerator(Operator):
    """State: how many elements came before, and the generator's own state where it offers one."""

    def __init__(self, node: Generator, setup: Setup) -> None:
        super().__init__(node.site)
        self._make: Callable[[], Iterator[Any]] = lambda: iter(node.generator(*node.args))
        self._name = function_name(node.generator)
        self._pace = Pace(setup.block_bytes, setup.unit)
        self._enough = ENOUGH_BLOCKS * setup.block_bytes
        self._conform = None if node.output_signature is None else _Conform(node.output_signature)
        self._builder = RowBuilder()
        self._iterator: Iterator[Any] | None = None
        self._index = 0
        self._skip = 0
        self._own_state: Any = None
        self._aside: _Aside | None = None
        self._lease = setup.ledger.lease(str(node.site))

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """By the generator's own state, or else by running it again from the start."""
        self.close()
        state = cursor.state or {"index": 0, "own": None}
        self._index, self._own_state = state["index"], state["own"]
        self._skip = cursor.skip + (0 if self._own_state is not None else self._index)
        self._index += cursor.skip
        return 0

    def pull(self) -> Block | None:
        """As many elements as the generator gives in a short time."""
        self.raise_pending()
        iterator = self._opened()
        first, self._aside = self._aside, None
        cursor = first.cursor if first else Cursor({"index": self._index, "own": self._snapshot(iterator)})
        elements: list[Any] = []
        began = time.perf_counter()
        shelf, error = self._fill(iterator, elements, first)
        del first
        block, fault = self._builder.build(elements, shelf) if elements else (None, None)
        if fault is not None:
            error = self.site.data_error(self._index + fault.row, fault.text)
        if block is None:
            if error is not None:
                raise error
            return None
        if error is not None:
            self.fail_next(error)
        self._pace.observe(len(elements), block.nbytes, time.perf_counter() - began)
        self._index += block.rows
        if self._aside is not None:
            # The generator's own state is that of the element behind it.
            self._aside.cursor = cursor.after(block.rows)
        return block.at(cursor)

    def _fill(
        self, iterator: Iterator[Any], elements: list[Any], first: "_Aside | None"
    ) -> tuple[Shelf | None, ForebayError | None]:
        """Take elements in; where large ones were put, and what went wrong.

        One that is too large for the block begins the next: with those before it, it would have to be copied once more.
        """
        began, left = time.perf_counter(), self._enough
        keep: Callable[[Any], Any] | None = None
        shelf = None
        if first is not None:
            keep, shelf = first.keep, first.shelf
            elements.append(first.element)
            left -= self._lease.held
            self._lease.release()
        try:
            while len(elements) < self._pace.rows and left >= 0:
                element = next(iterator)
                if self._conform is not None:
                    element = self._conform(element)
                size = element_bytes(element)
                if size > left and elements:
                    keep, other = keeper(element, self._pace.rows, self._enough)
                    self._aside = _Aside(keep(element), keep, other)
                    self._lease.note(size)
                    break
                if keep is None:
                    keep, shelf = keeper(element, self._pace.rows, self._enough)
                elements.append(keep(element))
                left -= size
                if len(elements) % 16 == 0 and not self._pace.in_time(began):
                    break
        except StopIteration:
            return shelf, None
        except RowError as error:
            return shelf, self.site.data_error(self._index + len(elements), error.text)
        except Exception as error:
            return shelf, self.site.function_error(self._index + len(elements), self._name, error)
        return shelf, None

    def _opened(self) -> Iterator[Any]:
        if self._iterator is None:
            try:
                iterator: Any = self._make()
                if self._own_state is not None:
                    iterator.load_state_dict(self._own_state)
                deque(islice(iterator, min(self._skip, sys.maxsize)), maxlen=0)
            except Exception as error:
                raise self.site.function_error(self._index, self._name, error) from error
            self._skip = 0
            self._iterator = iterator
        return self._iterator

    @staticmethod
    def _snapshot(iterator: Any) -> Any:
        """The generator's own state, if it both gives and takes one."""
        if hasattr(iterator, "state_dict") and hasattr(iterator, "load_state_dict"):
            return copy.deepcopy(iterator.state_dict())
        return None

    def close(self) -> None:
        """Run the generator's own clean-up now rather than when it is collected."""
        close: Callable[[], None] | None = getattr(self._iterator, "close", None)
        self._iterator = self._aside = None
        self._lease.release()
        if close is not None:
            close()
        super().close()


class _Conform:
    """Holds elements to the signature that the user gave: structure, dtype (cast, as tf.data does) and shape."""

    def __init__(self, signature: Any) -> None:
        self._specs, self._structure = flatten(signature, (TensorSpec,))

    def __call__(self, element: Any) -> Any:
        leaves = self._structure.leaves_of(element, tuples_too=True)
        if leaves is None:
            other = flatten(element)[1]
            raise RowError(0, f"the generator gave the structure {other}, output_signature says {self._structure}")
        names = self._structure.leaf_names()
        return self._structure.unflatten(
            [_cast(spec, leaf, name) for spec, leaf, name in zip(self._specs, leaves, names)]
        )


def _cast(spec: TensorSpec, value: Any, named: str) -> Any:
    if spec.dtype == OBJECT:
        return value
    if spec.dtype in (BYTES, TEXT):
        array = np.asarray(value, dtype=object) if not isinstance(value, np.ndarray) else value.astype(object)
        wanted = bytes if spec.dtype == BYTES else str
        if spec.dtype == BYTES:
            flat = [item.encode() if isinstance(item, str) else item for item in array.flat]
            array = np.fromiter(flat, object, len(flat)).reshape(array.shape)
        if not all(isinstance(item, wanted) for item in array.flat):
            raise RowError(0, f"{named} is not {wanted.__name__}, as output_signature says")
        shape = array.shape
        value = array[()] if array.ndim == 0 else array
    else:
        try:
            value = np.asarray(value, dtype=spec.dtype)
        except (TypeError, ValueError, OverflowError) as error:
            raise RowError(0, f"{named} does not convert to {spec.dtype.name}: {error}") from None
        shape = value.shape
        value = value[()]
    if spec.shape is not None and not spec.accepts(shape, spec.dtype):
        raise RowError(0, f"{named} has shape {shape}, output_signature says {spec.shape}")
    return value


def _spec(leaf: Any) -> TensorSpec:
    """A spec of ours, or what one of tf.data's or JAX's says."""
    if isinstance(leaf, TensorSpec):
        return leaf
    if type(leaf).__name__ not in _OTHERS:
        raise PlanError(f"from_generator(output_signature=...): {leaf!r} is not a forebay.TensorSpec")
    return _spec_of(leaf.shape, leaf.dtype)


def _spec_of(shape: Any, dtype: Any) -> TensorSpec:
    """Of ours, or of what TensorFlow and JAX have for shapes and dtypes."""
    dtype = BYTES if getattr(dtype, "name", "") == "string" else getattr(dtype, "as_numpy_dtype", dtype)
    return TensorSpec(None if getattr(shape, "rank", 0) is None else shape, dtype)


def signature_from_types(types: Any, shapes: Any) -> Any:
    """The signature that tf.data's older `output_types` and `output_shapes` arguments stand for."""
    try:
        if isinstance(types, dict):
            return {key: signature_from_types(types[key], None if shapes is None else shapes[key]) for key in types}
        if isinstance(types, tuple):
            parts = shapes if shapes is not None else (None,) * len(types)
            if len(parts) != len(types):
                raise PlanError(f"from_generator(): {len(types)} output_types, but {len(parts)} output_shapes")
            return tuple(signature_from_types(part, shape) for part, shape in zip(types, parts))
    except (KeyError, TypeError) as error:
        raise PlanError(f"from_generator(): output_shapes has another structure than output_types: {error!r}") from None
    return _spec_of(shapes, types)
