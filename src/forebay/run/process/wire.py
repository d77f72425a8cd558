"""Objects as messages: pickle protocol 5, array bytes apart from the pickle and never copied into it."""

import io
import itertools
import pickle
import sys
import weakref
from collections.abc import Callable
from types import FunctionType
from typing import Any

import cloudpickle  # type: ignore[import-untyped]
import numpy as np

from forebay.block.block import Block
from forebay.block.column import Column
from forebay.block.cursor import Cursor
from forebay.block.dense import Dense
from forebay.block.listed import Listed
from forebay.block.objects import Objects
from forebay.block.ragged import Ragged
from forebay.block.strings import Strings
from forebay.block.structure import LEAF, Structure
from forebay.run.process.remote_error import reduce_exception
from forebay.run.process.segment import Bytes, Part

_PLAIN = {char: np.dtype(char) for char in np.typecodes["AllInteger"] + np.typecodes["AllFloat"] + "?"}
"""Types of numbers and truth values that their letter says all about."""

# Below this, keeping a buffer apart costs more than copying it into the pickle.
_SMALL = 4096


_next_number = itertools.count()
_numbers: "weakref.WeakKeyDictionary[type[Any], int]" = weakref.WeakKeyDictionary()
_classes: "weakref.WeakValueDictionary[int, type[Any]]" = weakref.WeakValueDictionary()


def numbered_class(number: int) -> type[Any]:
    """The class that is called by that number, in the parent and in all of its workers."""
    return _classes[number]


class Types:
    """What one connection knows of classes that the other process cannot import.

    Each is sent once and from then on called by a number. A block of named tuples that were defined in a script would
    otherwise carry the class in every message, and every answer would write the worker's copy of the class over the
    one in the script. Only the parent gives numbers.
    """

    def __init__(self, parent: bool = True) -> None:
        self.parent = parent
        self.known: dict[int, type[Any]] = {}
        """The numbers that the other side knows. As long as it may use them, the classes must exist."""

    def copy(self) -> "Types":
        """The same knowledge, for another connection."""
        other = Types(self.parent)
        other.known = dict(self.known)
        return other

    def known_number(self, kind: type[Any]) -> int | None:
        """The number, if the other side knows it."""
        number = _numbers.get(kind)
        return number if number in self.known else None

    def give_number(self, kind: type[Any]) -> int:
        """The class's number; it gets one if it has none."""
        number = _numbers.get(kind)
        if number is None:
            # Without a lock, which would stay locked in a child that is forked meanwhile.
            number = _numbers.setdefault(kind, next(_next_number))
        # Also if another thread is about to note it: an answer with that number may come before it does.
        _classes[number] = kind
        return number

    def learn(self, numbered: "list[tuple[int, type[Any]]]") -> None:
        """In a worker: these classes have these numbers in the parent."""
        for number, kind in numbered:
            _numbers[kind] = number
            _classes[number] = kind
            self.known[number] = kind


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def __init__(self, file: io.BytesIO, buffers: list[pickle.PickleBuffer] | None, types: Types) -> None:
        def keep_apart(buffer: pickle.PickleBuffer) -> bool:
            if buffer.raw().nbytes < _SMALL:
                return True
            apart.append(buffer)
            return False

        apart = buffers if buffers is not None else []
        super().__init__(file, protocol=5, buffer_callback=None if buffers is None else keep_apart)
        self._types = types
        self.introduced: list[tuple[int, type[Any]]] = []

    def reducer_override(self, obj: Any) -> Any:
        kind = type(obj)
        reduce = _REDUCERS.get(kind)
        if reduce is not None:
            return reduce(obj)
        if issubclass(kind, type):
            if obj in _EVERYWHERE or _importable(obj):
                return NotImplemented
            number = self._types.known_number(obj)
            if number is not None:
                return numbered_class, (number,)
            if self._types.parent:
                self.introduced.append((self._types.give_number(obj), obj))
        elif kind is FunctionType:
            if obj in _EVERYWHERE or _importable(obj):
                return NotImplemented
        elif issubclass(kind, BaseException):
            return reduce_exception(obj, self._dumps)
        return super().reducer_override(obj)

    def _dumps(self, value: Any) -> bytes:
        file = io.BytesIO()
        _Pickler(file, None, self._types).dump(value)
        return file.getvalue()


def encode(value: Any, types: Types) -> list[Part]:
    """The parts of a message; arrays are parts of their own, and not copied. Raises what pickling raises."""
    file = io.BytesIO()
    buffers: list[pickle.PickleBuffer] = []
    pickler = _Pickler(file, buffers, types)
    # The list is pickled last, when it is complete; what is in it was pickled before and costs a reference.
    pickler.dump((value, pickler.introduced))
    types.known.update(pickler.introduced)
    return [file.getbuffer(), *(buffer.raw() for buffer in buffers)]


def decode(parts: list[Bytes], types: Types) -> Any:
    """The object that these parts were made of; its arrays take over the memory of the parts."""
    value, introduced = pickle.loads(parts[0], buffers=parts[1:])
    types.learn(introduced)
    return value


def _importable(kind: "type[Any] | FunctionType") -> bool:
    """Whether pickle finds it by its name, in a process that has not run the user's script.

    cloudpickle asks the same, but takes most of a message's time for it.
    """
    module = kind.__module__
    # Of a script, in the process that runs it and in those that multiprocessing made of it.
    if module in ("__main__", "__mp_main__"):
        return False
    found: Any = sys.modules.get(module)
    for name in kind.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is kind and not _sent_by_value(module)


def _sent_by_value(module: str) -> bool:
    registered = cloudpickle.list_registry_pickle_by_value()
    return any(module == name or module.startswith(f"{name}.") for name in registered)


def _reduce_array(array: Any) -> Any:
    char = array.dtype.char
    if array.flags.c_contiguous and array.dtype is _PLAIN.get(char):
        # Less to write and to read than what NumPy itself has to say about such an array. Not of its memoryview: Python
        # before 3.11.8 crashes if that and the buffer are collected together, as they are after a failure.
        return np.ndarray, (array.shape, char, pickle.PickleBuffer(array))
    if not array.flags.forc and not array.dtype.hasobject:
        # NumPy would copy arrays with gaps into the pickle.
        array = np.ascontiguousarray(array)
    return array.__reduce_ex__(5)


def _reduce_block(block: Block) -> Any:
    # Taken apart as far as it is the same for nearly all blocks: every object of its own costs a call on both sides.
    columns = tuple([_parts_of_dense(column) if type(column) is Dense else column for column in block.columns])
    structure = None if block.structure.is_leaf else block.structure
    return rebuild_block, (structure, columns, block.rows, block.cursor.state, block.cursor.skip)


def rebuild_block(
    structure: Structure | None, columns: "tuple[tuple[Any, bool] | Column, ...]", rows: int, state: Any, skip: int
) -> Block:
    """The block that was taken apart for its journey."""
    whole = [Dense(*column) if isinstance(column, tuple) else column for column in columns]
    return Block(structure or LEAF, whole, rows, Cursor(state, skip))


def _parts_of_dense(column: Dense) -> tuple[Any, bool]:
    # What arrives is a copy that nobody else reads. A view, because an array that two columns share would arrive as
    # one array that they share.
    values = column.values
    return values if column.owned else values.view(), column.owned or values.flags.writeable


def _reduce_dense(column: Dense) -> Any:
    return Dense, _parts_of_dense(column)


def _reduce_ragged(column: Ragged) -> Any:
    # A slice refers to all the values of the column it was cut from, which may be the whole dataset.
    first, last = int(column.offsets[0]), int(column.offsets[-1])
    values = column.values[first:last]
    return Ragged, (values, column.offsets - first, column.shapes, column.owned or values.flags.writeable)


def _reduce_strings(column: Strings) -> Any:
    first, last = int(column.offsets[0]), int(column.offsets[-1])
    return Strings, (column.data[first:last], column.offsets - first, column.shape, column.text)


# By the exact type. Those of one line say what pickle would find out, in a fraction of the time.
_REDUCERS: dict[type[Any], Callable[[Any], Any]] = {
    Block: _reduce_block,
    Cursor: lambda cursor: (Cursor, (cursor.state, cursor.skip)),
    Structure: lambda structure: (Structure, (structure.kind, structure.keys, structure.children)),
    np.ndarray: _reduce_array,
    Dense: _reduce_dense,
    Ragged: _reduce_ragged,
    Strings: _reduce_strings,
    Listed: _reduce_strings,
}

# What nearly every message refers to, so that it need not be looked for.
_EVERYWHERE = frozenset([*_REDUCERS, rebuild_block, np.dtype, tuple, dict, Objects, np.empty(0).__reduce_ex__(5)[0]])
