"""Who has how much on a disk that things are spilled to, for the errors that say that it is full."""

import os

# By descriptor: the dataset that the file is of. Plain reads and writes of a dict need no lock, which nothing that the
# garbage collector may call could take.
_files: dict[int, object] = {}
# What the system counts in.
_SECTOR = 512


def opened(file: int, owner: object) -> None:
    """There is one more file, of that dataset."""
    _files[file] = owner


def closing(file: int) -> None:
    """It is about to be closed."""
    _files.pop(file, None)


def in_use(owner: object, disk: int) -> tuple[int, int]:
    """Bytes of a disk that files of a dataset take up, and those of others of this process.

    As the system has it: what was set aside for what is to come is gone from the disk too, holes are not.
    """
    mine = others = 0
    for file, of in list(_files.items()):
        try:
            found = os.fstat(file)
        except OSError:  # Closed by another thread just now.
            continue
        if found.st_dev == disk and of is owner:
            mine += found.st_blocks * _SECTOR
        elif found.st_dev == disk:
            others += found.st_blocks * _SECTOR
    return mine, others
