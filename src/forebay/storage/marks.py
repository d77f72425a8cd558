"""Files that begin with the mark of their format: what to say to whoever takes them for text."""

import re

MARK = 16
"""So many bytes tell whether a file has the mark of a binary format."""
_UNPACK = "Forebay reads gzip and zlib; unpack it, or compress it with one of them"

# None of them can be text: where a mark is made of letters, what comes behind it is not.
_MARKS: tuple[tuple[bytes, str], ...] = (
    (rb"PAR1[\0-\x08\x0e-\x1f]", "is a Parquet file: read it with Dataset.from_parquet"),
    (rb"ARROW1\0", "is an Arrow file: read it with Dataset.from_arrow"),
    (rb"\x93NUMPY", "is an array of NumPy: read it with Dataset.from_npy"),
    (rb"SQLite format 3\0", "is a database of SQLite: read it with SqlDataset"),
    (rb"\x1f\x8b\x08", "is compressed with gzip: read it with compression_type='GZIP'"),
    (rb"PK\x03\x04", "is a zip archive: unpack it, or name a file in it, as in 'zip://data.csv::archive.zip'"),
    (rb"\x28\xb5\x2f\xfd", f"is compressed with zstd: {_UNPACK}"),
    (rb"\xfd7zXZ\0", f"is compressed with xz: {_UNPACK}"),
    (rb"BZh[1-9]1AY&SY", f"is compressed with bzip2: {_UNPACK}"),
    (rb"\x04\x22\x4d\x18", f"is compressed with lz4: {_UNPACK}"),
)


def not_text(data: bytes) -> str | None:
    """What a file that begins with these bytes is, and how to read it; None if they may be text."""
    return next((what for mark, what in _MARKS if re.match(mark, data, re.DOTALL)), None)
