"""``save``: all rows of a dataset to disk."""

import os
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import Any, Protocol

import numpy as np

from forebay.block import Block
from forebay.errors import PlanError
from forebay.plan.fingerprint import function_name
from forebay.run import Site
from forebay.run.calls import Call, RowCalls
from forebay.storage.folder import local_folder
from forebay.storage.writer import ShardOf
from forebay.system import on_terminal

_NONE = ("NONE", "")


def compression_of(call: str, value: Any) -> str | None:
    """The codec that a user means, in tf.data's terms or Arrow's."""
    if value is None or (isinstance(value, str) and value in _NONE):
        return None
    if isinstance(value, str) and value in ("zstd", "lz4"):
        return str(value)
    raise PlanError(f"{call}(compression={value!r}): compression must be None, 'zstd' or 'lz4'")


def folder_of(call: str, path: Any) -> str:
    """The path as text."""
    try:
        text = os.fspath(path)
    except TypeError:
        raise PlanError(f"{call}(path={path!r}): path must be the name of a folder") from None
    if not text:
        raise PlanError(f"{call}(path={path!r}): path must be the name of a folder")
    return local_folder(call, os.fsdecode(text))


def shards_by(site: Site, shard_func: Callable[..., Any]) -> ShardOf:
    """The user's function for all rows of a block."""
    calls = RowCalls(Call(shard_func, function_name(shard_func), site), keep=True)

    def shard_of(block: Block, first: int) -> "np.ndarray[Any, Any]":
        results, error = calls(block, np.arange(first, first + block.rows), 0)
        if error is not None:
            raise error
        shards = np.empty(len(results), np.int64)
        for i, result in enumerate(results):
            number = np.asarray(result)
            if number.dtype.kind not in "iu" or number.size != 1 or not 0 <= int(number.reshape(())) < 2**63:
                raise site.data_error(
                    first + i,
                    f"{function_name(shard_func)} returned {result!r}, it must return a whole number from 0 on",
                )
            shards[i] = number.reshape(())
        return shards

    return shard_of


class Writer(Protocol):
    """What rows go to: ``finish`` puts everything in place, ``close`` without it leaves nothing."""

    def add(self, block: Block) -> None:
        """Take rows."""

    def finish(self) -> object:
        """Put everything in place."""

    def close(self) -> None:
        """Give up what was not finished."""


def write_blocks(
    blocks: Generator[Block, None, None], writer: Writer, total: int | None, progress: bool | None
) -> None:
    """Everything, or nothing at all if there is an error."""
    try:
        with closing(blocks), _progress(total, progress) as advance:
            for block in blocks:
                writer.add(block)
                advance(block.rows)
            writer.finish()
    finally:
        writer.close()


@contextmanager
def _progress(total: int | None, progress: bool | None) -> Iterator[Callable[[int], None]]:
    """A bar on the terminal, if there is one or the user wants it."""
    if progress is False or (progress is None and not on_terminal()):
        yield lambda rows: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("saving"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("save", total=total)
        yield lambda rows: bar.advance(task, rows)
