"""``forebay convert``: from one file format to another."""

import os
from contextlib import AbstractContextManager
from enum import StrEnum
from typing import Annotated

import typer

from forebay.cli.output import console, memory_size, plain, progress, told
from forebay.formats.convert import Advance, Converted
from forebay.formats.convert import convert as write
from forebay.formats.format import UsageError
from forebay.formats.shown import size_text

_SHOWN_FAULTS = 5


class OnError(StrEnum):
    """What to do about what cannot be read."""

    RAISE = "raise"
    SKIP = "skip"


def convert(
    # Both are needed. If they were declared so, Click would tell of a missing one in a screenful that names neither.
    source: Annotated[
        list[str] | None, typer.Argument(metavar="SRC", show_default=False, help="Files, patterns, folders, or URLs.")
    ] = None,
    target: Annotated[
        str, typer.Argument(metavar="DST", show_default=False, help="A file, or a folder for a saved dataset.")
    ] = "",
    to: Annotated[
        str | None, typer.Option(help="tfrecord, parquet, arrow, webdataset or saved; by default DST's ending tells.")
    ] = None,
    shards: Annotated[int | None, typer.Option(min=1, help="How many files; {shard} in DST is their number.")] = None,
    compression: Annotated[str | None, typer.Option(help="As the format has it: gzip, zlib, zstd, lz4, ...")] = None,
    columns: Annotated[str | None, typer.Option(help="Names of the columns to keep, separated by commas.")] = None,
    features: Annotated[
        str | None, typer.Option(help="Of TFRecord files: label=int64,box=float32[4],words=bytes[]")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    on_error: Annotated[OnError, typer.Option(help="Pass over what cannot be read, or give up.")] = OnError.RAISE,
    max_errors: Annotated[int, typer.Option(min=0, help="Faults to pass over in each file.")] = 100,
    memory: Annotated[str | None, typer.Option(callback=memory_size, help="The most memory to use, as 512MiB.")] = None,
) -> None:
    """Write the rows of files in another format.

    Reads whatever `forebay inspect` has a line of Python for. DST appears when
    it is complete, or not at all, and nothing is replaced without --overwrite.
    """
    with told():
        if not source:
            # A single path is taken for the last of the two.
            missing = "DST is missing" if target else "SRC and DST are missing"
            raise UsageError(f"{missing}, as in: forebay convert {target or 'train.csv'} {_example(target)}")
        done = write(
            source,
            target,
            to=to,
            shards=shards,
            compression=compression,
            columns=None if columns is None else [name.strip() for name in columns.split(",")],
            features=features,
            overwrite=overwrite,
            on_error=on_error.value,
            max_errors=max_errors,
            memory=memory,
            watch=_watch,
        )
        _show(done)


def _example(source: str) -> str:
    """A target for it."""
    stem = os.path.splitext(os.path.basename(source.rstrip("/")))[0].strip("*-_.") or "train"
    return f"{stem}.tfrecord" if source.endswith((".parquet", ".pq")) else f"{stem}.parquet"


def _watch(what: str, total: int | None) -> "AbstractContextManager[Advance]":
    return progress(what, total)


def _show(done: Converted) -> None:
    out = console()
    where = done.files[0] if len(done.files) == 1 else f"{len(done.files)} files, {done.files[0]} to {done.files[-1]}"
    out.print(plain(where, "bold"), soft_wrap=True)
    skipped = f", {done.skipped:,} faults passed over" if done.skipped else ""
    out.print(f"  {done.rows:,} rows, {size_text(done.bytes)}, in {done.seconds:.1f} s{skipped}")
    for note in done.notes:
        out.print(plain(f"  {note}"), soft_wrap=True)
    for fault in done.listed_faults[:_SHOWN_FAULTS]:
        out.print(plain(f"  passed over: {fault.place}: {fault.reason}"), soft_wrap=True)
