"""Calls of the user's functions, row by row or column by column, with every failure traced to its element."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, starmap
from typing import Any, Protocol

import numpy as np

from forebay.block import (
    Block,
    Column,
    Indices,
    Normalizer,
    RowError,
    Uniform,
    array_of,
    column_from_array,
    concat_blocks,
    flatten,
)
from forebay.block.leaf import detached, element_bytes
from forebay.block.shelf import Shelf, keeper
from forebay.errors import ForebayError, FunctionError
from forebay.run.keys import Generators, key_of
from forebay.run.operator import Site
from forebay.run.shown import shown, shown_row


@dataclass(frozen=True, slots=True)
class Call:
    """A function, what to call it, and the seed of the generator it is given, if it is given one."""

    function: Callable[..., Any]
    name: str
    site: Site
    seed: int | None = None


class OnColumns(Protocol):
    """A function that has another form, which does the same to whole columns."""

    def accepts(self, block: Block) -> bool:
        """Whether these rows can be handled in that form."""

    def on_block(self, block: Block) -> tuple[Block | None, Exception | None]:
        """A block of as many rows; or of those before the first that fails, and what the function would raise."""


class RowCalls:
    """Runs one function, or several back to back, on every element of a block.

    `keep` says that the block is still needed afterwards, whatever the function does to its arguments. Results that
    take up more than `most_bytes` are enough: the rows behind them are for another call.
    """

    def __init__(self, *calls: Call, keep: bool = False, most_bytes: int = 1 << 62) -> None:
        self._calls = calls
        self._keep = keep
        self._most_bytes = most_bytes
        self._normalizers = [Normalizer() for _ in calls[1:]]
        self._generators: list[Generators | None] = [None] * len(calls)
        self._shelf: Shelf | None = None
        self._epoch: int | None = None

    def __call__(self, block: Block, indices: Indices, epoch: int) -> tuple[list[Any], ForebayError | None]:
        """One result per row, up to the first row that failed, and that failure, or to where they are enough.

        `indices` are the elements' numbers: they key the random numbers and name the element in errors.
        """
        self._shelf = None
        if any(call.seed is not None for call in self._calls):
            return self._step_by_step(block, indices, epoch)
        results: list[Any] = []
        try:
            enough = self._collect(self._chain(block), results, block.rows)
        except Exception as error:
            return results, self._fault(block, indices, len(results), error)
        if len(results) < block.rows and not enough:
            # A StopIteration out of a function looks like the end of the rows.
            return results, self._fault(block, indices, len(results), StopIteration())
        return results, None

    def _collect(self, values: Iterator[Any], results: list[Any], rows: int) -> bool:
        """Take the values in, up to one for each row, and tell whether those that were taken are enough."""
        left = self._most_bytes
        last: list[Any] = []
        keep: Callable[[Any], Any] = detached

        def taken(value: Any) -> Any:
            nonlocal left
            value = keep(value)
            left -= element_bytes(value)
            if left < 0:
                # The one way to end what runs through the values. This one has been made, and belongs to them.
                last.append(value)
                raise StopIteration
            return value

        for first in values:
            if isinstance(first, (np.number, np.bool_, int, float)):
                # Values that cannot change later may be kept as they are.
                results.append(first)
                results.extend(values)
            else:
                keep = self._keeper(first, rows)
                results.extend(map(taken, chain((first,), values)))
            # A function that raised StopIteration has only seemed to end the values: do not ask for more.
            break
        results.extend(last)
        return bool(last)

    def take_shelf(self) -> Shelf | None:
        """Where the last results are, if they are large. Not kept here: the rows belong to whoever has them."""
        shelf, self._shelf = self._shelf, None
        return shelf

    def _keeper(self, first: Any, rows: int) -> Callable[[Any], Any]:
        """What gives results like the first one arrays of their own."""
        keep, self._shelf = keeper(first, rows, self._most_bytes)
        return keep

    def _chain(self, block: Block) -> Iterator[Any]:
        """The results, one element through all functions before the next: only one is ever in between."""
        # A single function is never called again for the same rows, so it may have them for itself.
        rows = block.scratch() if self._keep or len(self._calls) > 1 else block.private()
        iterator = rows.calls(self._calls[0].function)
        for call, normalize in zip(self._calls[1:], self._normalizers):
            # The first value is looked at now, since it decides how values are passed on.
            first = normalize(next(iterator))
            values = chain((first,), map(normalize.fast, iterator))
            iterator = starmap(call.function, values) if normalize.unpacks else map(call.function, values)
        return iterator

    def _fault(self, block: Block, indices: Indices, row: int, cause: Exception) -> ForebayError:
        """What went wrong at a row, found by going through it once more, step by step."""
        error = None
        if len(self._calls) > 1 or isinstance(cause, StopIteration):
            # What has looked like the end of the rows leads nowhere in the function.
            _, error = self._step_by_step(block.slice(row, row + 1), indices[row : row + 1], 0)
        if error is not None:
            return error
        # If it went well this time, the function does not depend on its arguments alone.
        call = self._calls[-1]
        element = shown_row(block, row) if len(self._calls) == 1 else None
        return call.site.function_error(int(indices[row]), call.name, cause, element)

    def _step_by_step(self, block: Block, indices: Indices, epoch: int) -> tuple[list[Any], ForebayError | None]:
        self._rekey(epoch)
        steps = list(zip([s.function for s in self._calls], self._generators, [*self._normalizers, None]))
        unpacks = block.structure.is_tuple
        results: list[Any] = []
        keep: Callable[[Any], Any] | None = None
        left = self._most_bytes
        done = 0
        index = 0
        given = None
        try:
            for index, element in zip(indices.tolist(), block.private().elements()):
                done = 0
                value, several = element, unpacks
                for function, generators, normalize in steps:
                    given = value
                    arguments = value if several else (value,)
                    if generators is not None:
                        arguments = (*arguments, generators.at(index))
                    value = function(*arguments)
                    if normalize is not None:
                        value = normalize.fast(value)
                        several = normalize.unpacks
                    done += 1
                keep = keep or self._keeper(value, block.rows)
                results.append(keep(value))
                left -= element_bytes(results[-1])
                if left < 0:
                    break
        except RowError as error:
            return results, self._calls[done].site.data_error(index, error.text)
        except Exception as error:
            call = self._calls[done]
            return results, call.site.function_error(index, call.name, error, shown(given))
        return results, None

    def _rekey(self, epoch: int) -> None:
        if epoch != self._epoch:
            self._epoch = epoch
            self._generators = [
                None if call.seed is None else Generators(key_of(call.seed, epoch, "map")) for call in self._calls
            ]


class ColumnCalls:
    """Runs a function on whole columns. It must treat each row by itself: where blocks end is not its business."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._uniform = Uniform()

    def __call__(self, block: Block, indices: Indices) -> tuple[Block | None, ForebayError | None]:
        """A block of as many rows; or of those before the first that fails, and that failure."""
        try:
            return self._apply(block), None
        except RowError as error:
            failure: ForebayError = self._call.site.data_error(int(indices[0]), error.text)
        except Exception as error:
            element = shown_row(block, 0) if block.rows == 1 else None
            failure = self._call.site.function_error(int(indices[0]), self._call.name, error, element)
        if block.rows == 1:
            return None, failure
        # Halve until the failing row stands alone, so that the error names it and the rows before it come out.
        middle = block.rows // 2
        first, fault = self(block.slice(0, middle), indices[:middle])
        if fault is not None:
            return first, fault
        second, fault = self(block.slice(middle, block.rows), indices[middle:])
        if fault is None:
            # No row is to blame.
            if isinstance(failure, FunctionError):
                failure.together = True
            return None, failure
        parts = [part for part in (first, second) if part is not None]
        return concat_blocks(parts) if parts else None, fault

    def _apply(self, block: Block) -> Block:
        arguments = block.scratch(whole=True)
        element = arguments.structure.unflatten([array_of(column) for column in arguments.columns])
        result = self._call.function(*element) if block.structure.is_tuple else self._call.function(element)
        leaves, structure = flatten(result)
        columns = [self._column(leaf, path, block.rows) for leaf, path in zip(leaves, structure.paths())]
        return self._uniform.fit(Block(structure, columns, block.rows))

    @staticmethod
    def _column(leaf: Any, path: str, rows: int) -> Column:
        named = f"leaf {path}" if path else "the result"
        try:
            column = column_from_array(leaf, owned=False)
        except RowError as error:
            raise RowError(0, f"{named} {error.text}; a batched function must return whole columns") from None
        if len(column) != rows:
            raise RowError(0, f"{named} has {len(column)} rows, the function was given {rows}")
        return column
