"""What is wrong with a saved dataset, and whether its folder may be replaced."""

import errno
import os
import re

from forebay.errors import DataError
from forebay.storage.file_reader import StoredFile
from forebay.storage.manifest import MANIFEST, is_saved_dataset, read_manifest

_WRITTEN = re.compile(r"shard-\d+-\d+\.arrow")


def damage(folder: str, rows: bool = False) -> DataError | None:
    """What can be told without reading rows, or with it; None if nothing is wrong, or nothing saved is there.

    Raised is what says nothing of the files: that they may not be read, or that no more can be opened.
    """
    if not is_saved_dataset(folder):
        lost = is_own(folder)
        return DataError(f"{os.path.join(folder, MANIFEST)} is missing") if lost else None
    try:
        manifest = read_manifest(folder, "snapshot")
        for info in manifest.files if rows else ():
            file = StoredFile(os.path.join(folder, info.name), info)
            for batch in range(len(info.batch_rows)):
                file.record_batch(batch)
    except DataError as error:
        if isinstance(error.__cause__, OSError) and error.__cause__.errno != errno.EIO:
            raise
        return error
    return None


def is_own(folder: str) -> bool:
    """Whether a folder holds what a saved dataset is made of, and nothing else."""
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    return bool(names) and all(name == MANIFEST or _WRITTEN.fullmatch(name) for name in names)


def is_remains(folder: str) -> bool:
    """Whether there is a saved dataset that cannot be opened, and nothing else."""
    return is_own(folder) and damage(folder) is not None
