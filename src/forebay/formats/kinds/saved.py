"""Folders that Forebay writes: saved datasets, and caches."""

import os
import re
from pathlib import Path
from typing import Any

import forebay as fb
from forebay.errors import DataError
from forebay.formats.format import Facts, Files, Format, Reading, Writer, Writing
from forebay.run.cached_folder import FolderContent
from forebay.storage.manifest import is_saved_dataset, read_manifest

_CACHE = re.compile(r"([0-9a-f]{32})\.(data|index)")


def is_cache(folder: str) -> bool:
    """Whether ``cache`` has written there."""
    return any(_CACHE.fullmatch(name) for name in os.listdir(folder))


def _open(files: Files, reading: Reading) -> "fb.Dataset[Any]":
    dataset: fb.Dataset[Any] = fb.Dataset.load(files.paths[0])
    for path in files.paths[1:]:
        dataset = dataset.concatenate(fb.Dataset.load(path))
    return dataset


def _saved_facts(files: Files) -> Facts:
    rows = batches = shards = 0
    codec = "none"
    for path in files.paths:
        manifest = read_manifest(path, "load")
        rows += manifest.rows
        batches += sum(len(file.batch_rows) for file in manifest.files)
        shards += len(manifest.shards)
        codec = manifest.compression or "none"
    return Facts(rows, {"shards": f"{shards:,}", "record batches": f"{batches:,}", "compression": codec})


def _cache_facts(files: Files) -> Facts:
    """Rows under each key. What is kept is pickled, and only its descriptions are looked at."""
    rows = 0
    said: dict[str, str] = {}
    for folder in files.paths:
        keys = sorted({found[1] for name in os.listdir(folder) if (found := _CACHE.fullmatch(name))})
        for key in keys:
            try:
                content = FolderContent(Path(folder), key, None)
            except (OSError, ValueError, TypeError, KeyError) as error:
                raise DataError(f"{folder}: its index cannot be read: {error!r}") from error
            rows += content.rows
            said[f"key {key[:8]}"] = f"{content.rows:,} rows, {'complete' if content.complete else 'not complete'}"
    return Facts(rows, said)


def _write(dataset: "fb.Dataset[Any]", writing: Writing) -> None:
    dataset.save(writing.path, writing.compression, progress=False)


SAVED = Format(
    name="saved",
    title="saved dataset",
    folder=True,
    begins=lambda head: is_saved_dataset(head.path),
    open=_open,
    code=lambda files: f"fb.Dataset.load({files.paths[0]!r})" if len(files.paths) == 1 else None,
    by_number=lambda files: "yes",
    facts=_saved_facts,
    write=Writer(_write, codecs=("zstd", "lz4"), folder=True, table=True),
)

CACHE = Format(
    name="cache",
    title="folder of cache()",
    folder=True,
    begins=lambda head: is_cache(head.path),
    facts=_cache_facts,
    advice="only the dataset that wrote it reads it: .cache(path) behind the same steps",
)
