"""``write_tfrecord``: all rows of a dataset to TFRecord files."""

import os
from collections.abc import Callable, Generator
from contextlib import closing
from typing import Any

import numpy as np

from forebay.block import Block
from forebay.block.strings import Strings
from forebay.errors import DataError, PlanError
from forebay.io.serialize import serialized_block
from forebay.io.tfrecord import framed
from forebay.run import Site
from forebay.storage.output import OutputFile


def shard_paths(call: str, pattern: Any, shards: int) -> list[str]:
    """The files' names: `{shard}` and `{shards}` stand for the number of each and of all."""
    try:
        text = os.fsdecode(pattern)
    except TypeError:
        raise PlanError(f"{call}({pattern!r}): give a path") from None
    if "{" not in text and shards > 1:
        text += "-{shard:05d}-of-{shards:05d}"
    try:
        paths = [text.format(shard=shard, shards=shards) for shard in range(shards)]
    except (KeyError, IndexError, ValueError) as error:
        raise PlanError(f"{call}({text!r}): only {{shard}} and {{shards}} are filled in ({error})") from None
    if len(set(paths)) < shards:
        raise PlanError(f"{call}({text!r}, shards={shards}): {{shard}} must be in it, or all would have one name")
    return paths


def write_records(
    blocks: Generator[Block, None, None],
    site: Site,
    paths: list[str],
    compression: str | None,
    advance: Callable[[int], None],
) -> None:
    """Row i to file i modulo their number. The files appear when all of them are complete, or not at all."""
    files: list[OutputFile] = []
    rows = 0
    try:
        with closing(blocks):
            # One by one: those that could be opened are removed again if the next one cannot.
            files.extend(OutputFile(path, compression, atomic=True) for path in paths)
            for block in blocks:
                records = _records(block, site, rows)
                for shard, file in enumerate(files):
                    own = np.arange((shard - rows) % len(files), block.rows, len(files))
                    if len(own):
                        part = records.take(own)
                        file.write(framed(part.data, part.offsets))
                rows += block.rows
                advance(rows)
            for file in files:
                file.finish()
            for file in files:
                file.close()
    except BaseException:
        for file in files:
            file.discard()
        raise


def _records(block: Block, site: Site, first: int) -> Strings:
    column = block.columns[0] if block.structure.is_leaf else None
    if isinstance(column, Strings) and column.shape == ():
        return column
    if block.structure.kind is dict:
        try:
            return serialized_block(block)
        except DataError as error:
            raise site.data_error(first, str(error)) from None
    raise site.data_error(first, "a TFRecord file holds bytes, text, or dicts, which are written as Examples")
