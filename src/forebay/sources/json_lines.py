"""JSON lines, one object per line: ``Dataset.from_json``.

A line's place in an uncompressed file is its offset, so resuming is a seek; a compressed file is unfolded again up to
there. Empty lines are passed over.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from forebay._native import scan_lines
from forebay.block import Block, Indices, Structure, TensorSpec
from forebay.errors import FileError
from forebay.ledger import Lease
from forebay.plan.text import brief
from forebay.run import Setup
from forebay.sources.files import FileRows
from forebay.sources.json_columns import JsonLeaf, Unfit, columns_of
from forebay.sources.streamed import Look, StreamedFile, StreamedFiles, StreamedRows

# Of a file: white space may stand before its first value.
_BEGINNING = 1 << 10
# Lines from which on it is looked at what they would take up in memory, and what one object in them does, about.
_LONG, _OBJECT = 1 << 16, 64


def _loader() -> Callable[[bytes], Any]:
    """orjson where it is installed, which is several times faster and reads the same."""
    try:
        import orjson
    except ImportError:
        return _loads
    return orjson.loads  # type: ignore[no-any-return]


def _loads(line: bytes) -> Any:
    # Neither JSON nor accepted by orjson.
    return json.loads(line, parse_constant=_refuse)


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


@dataclass(frozen=True, eq=False, kw_only=True)
class JsonLines(StreamedFiles):
    """The objects of files. There is a leaf for each leaf of the structure, in its order."""

    structure: Structure
    leaves: tuple[JsonLeaf, ...]

    kind = "from_json"
    in_lines = True
    untold = ("structure",)

    def spec(self, *inputs: Any) -> Any:
        """As declared, or as the first objects showed."""
        return self.structure.unflatten([TensorSpec(leaf.shape, leaf.dtype) for leaf in self.leaves])

    def open(self, path: str, at: Any, lease: Lease, setup: Setup) -> FileRows:
        """From an offset on."""
        return _Objects(self, path, at or 0, lease, setup)


def _loaded_bytes(line: bytes) -> int:
    """About what a line takes up as Python's objects, of which one can be 20 times as large as its text."""
    if len(line) < _LONG:
        return 0
    return len(line) + _OBJECT * sum(map(line.count, (b",", b"[", b"{")))


class _Parsed(StreamedFile):
    """Lines as Python objects."""

    def __init__(self, node: StreamedFiles | Look, path: str, at: int, lease: Lease, setup: Setup) -> None:
        super().__init__(node, path, at, lease, setup)
        self._load = _loader()
        self._behind: int | None = None
        self._most = setup.ledger.budget
        self._hint = f", and the budget is {self._most:,} bytes (Options.memory)"

    def lines(self, rows: int) -> "tuple[list[bytes], Indices, int] | None":
        """Up to so many lines with their places in the window, and the bytes that they take."""
        self.show(rows)
        starts, stops = np.empty(rows, np.int64), np.empty(rows, np.int64)
        self._behind = None
        while self.window.size:
            data = self.window.data
            count, consumed = scan_lines(data, self.last, starts, stops)
            if count:
                raw = data[:consumed].tobytes()
                found = [raw[a:b] for a, b in zip(starts[:count].tolist(), stops[:count].tolist())]
                return found, starts[:count], consumed
            self.show_more()
        return None

    def objects(self, rows: int) -> "tuple[list[Any], list[int], int, FileError | None] | None":
        """The objects of the next lines, their places, where the next line begins, and a fault that ended them."""
        if self.window.position == 0:
            self._check_lines()
        while True:
            found = self.lines(rows)
            if found is None:
                return None
            lines, starts, consumed = found
            objects: list[Any] = []
            places: list[int] = []
            for line, start in zip(lines, starts.tolist()):
                if not line.strip():
                    continue
                if (size := _loaded_bytes(line)) > self._most:
                    fault = self.fault(start, f"the line takes some {size:,} bytes as objects{self._hint}")
                    return objects, places, start, fault
                try:
                    value = self._load(line)
                    if type(value) is not dict:
                        raise ValueError(f"it is {brief(repr(value))}, not an object")
                except (ValueError, RecursionError) as error:
                    hint = (
                        "; an object has to stand on one line, as `jq -c .` writes it" if line.strip() == b"{" else ""
                    )
                    # To the parser, every line is the first.
                    said = str(error).replace("line 1 column", "column")
                    fault = self.fault(start, f"the line is not a JSON object: {said}{hint}")
                    return objects, places, start, fault
                objects.append(value)
                places.append(start)
            if objects:
                return objects, places, consumed, None
            self.window.move(consumed)

    def _check_lines(self) -> None:
        """An array is not read up to its end, which may be that of the file, to find out that it is no object."""
        self.show(1)
        if self.window.data[:_BEGINNING].tobytes().lstrip().startswith(b"["):
            raise self.fault(
                0,
                "the file is one JSON array, and not an object on every line: write its objects as lines, as "
                "`jq -c '.[]'` does, or load it whole and use from_generator",
            )

    def fault(self, start: int, reason: str) -> FileError:
        """The error for the line at that place of the window."""
        return FileError(self.path, reason, self.window.position + start)

    def recover(self) -> bool:
        """Behind the line."""
        try:
            return self.next_line()
        except FileError:
            return False


class _Objects(_Parsed, StreamedRows):
    def __init__(self, node: JsonLines, path: str, at: int, lease: Lease, setup: Setup) -> None:
        super().__init__(node, path, at, lease, setup)
        self._node = node

    def read(self, rows: int) -> Block | None:
        """As many objects as there are before one that cannot be read."""
        found = self.objects(rows)
        if found is None:
            return None
        objects, places, consumed, fault = found
        while objects:
            try:
                columns = columns_of(self._node.structure, self._node.leaves, objects)
            except Unfit as error:
                consumed, fault = places[error.row], self.fault(places[error.row], error.reason)
                objects = objects[: error.row]
                continue
            self.used(len(objects), consumed)
            return Block(self._node.structure, columns, len(objects))
        # Empty lines before it are no part of what is at fault.
        self.window.move(consumed)
        assert fault is not None
        raise fault


def first_objects(look: Look, rows: int, skip: bool) -> list[Any]:
    """The first objects of a file, as far as they can be read."""
    setup = look.setup()
    first = _Parsed(look, look.path, 0, setup.ledger.lease("inference"), setup)
    objects: list[Any] = []
    try:
        while len(objects) < rows:
            try:
                found = first.objects(rows - len(objects))
                if found is None:
                    break
                objects += found[0]
                first.window.move(found[2])
                if found[3] is not None:
                    raise found[3]
            except FileError:
                if skip and first.recover():
                    continue
                if not objects and not skip:
                    raise
                # Whoever reads the file that far is told.
                break
    finally:
        first.close()
    return objects
