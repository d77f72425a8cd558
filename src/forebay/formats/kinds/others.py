"""What Forebay has no reader for, and what to do about it."""

from forebay.formats.format import Format
from forebay.formats.head import Head

_COMPRESSED = (b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\0", b"BZh", b"\x04\x22\x4d\x18")

EMPTY = Format(
    name="empty",
    title="an empty file",
    begins=lambda head: head.size == 0,
    advice="there is nothing in it",
)

COMPRESSED = Format(
    name="compressed",
    title="compressed with zstd, xz, bzip2 or lz4",
    begins=lambda head: head.data.startswith(_COMPRESSED),
    advice="Forebay reads gzip and zlib; unpack it, or compress it with one of them",
)


def _any(head: Head) -> bool:
    return True


UNKNOWN = Format(
    name="unknown",
    title="unknown binary data",
    begins=_any,
    advice=(
        "nothing in its first bytes or its name tells a format; records of one length are read by "
        "fb.FixedLengthRecordDataset(path, record_bytes), token ids by fb.Dataset.from_tokens(path, dtype, length)"
    ),
)
