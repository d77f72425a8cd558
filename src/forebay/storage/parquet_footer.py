"""The footer of a Parquet file, looked at before Arrow does.

Arrow's Parquet library throws where a row group describes a column in another way than the schema does: another type,
another number of columns or of levels, or a least or greatest value that is shorter than a value. pyarrow 26.0 does not
catch that when it is asked for statistics, and the process ends. So the footer's length is compared with the file's,
its framing is followed, and these descriptions are compared with the schema, by a kernel.

That is all that ended a process among some 10,000 files with a byte of their footer changed. Arrow says itself what is
wrong with everything else, as far as is known: one that is made for it may still find a way to end a process. Whoever
reads files of strangers does so in a process that may die.
"""

import numpy as np

from forebay._native import parquet_fault
from forebay.storage.files import Bytes, InputFile

_MAGIC, _ENCRYPTED = b"PAR1", b"PARE"
# The length and the mark at the end.
_ENDING = 8
# Most footers are smaller; one more read gets the others.
_TAIL = 1 << 16


def read_footer(file: InputFile) -> Bytes:
    """The footer and what stands behind it, which Arrow takes for a file. ValueError if it is not sound."""
    tail = _from(file, max(file.size - _TAIL, 0))
    mark = tail[-4:].tobytes()
    if file.size < _ENDING + len(_MAGIC) or mark not in (_MAGIC, _ENCRYPTED):
        raise ValueError(f"it has {file.size:,} bytes, and no mark at its end")
    length = int.from_bytes(tail[-8:-4].tobytes(), "little")
    if length > file.size - _ENDING - len(_MAGIC):
        raise ValueError(f"its footer would have {length:,} of its {file.size:,} bytes")
    if length + _ENDING > len(tail):
        tail = _from(file, file.size - length - _ENDING)
    footer = tail[len(tail) - length - _ENDING :]
    if mark == _MAGIC:
        fault = parquet_fault(footer[:length])
        if fault is not None:
            raise ValueError(f"its footer is damaged: {fault}")
    return footer


def _from(file: InputFile, start: int) -> Bytes:
    data = np.empty(file.size - start, np.uint8)
    return data[: file.read_at(start, data)]
