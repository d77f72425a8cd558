"""Compressed strings, and strings of numbers: ``decode_compressed`` and ``decode_raw``."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from forebay.block.strings import object_array
from forebay.errors import DataError, PlanError
from forebay.sizes import memory_left, parse_size
from forebay.storage.inflate import InflateError, unfolded
from forebay.storage.streams import compression_of


def decode_compressed(data: Any, compression_type: str | None = "", *, max_bytes: int | str | float = "1GiB") -> Any:
    """What a compressed string holds. An array of strings gives an array of them.

    Damaged or incomplete data is a DataError (tf.io gives back what there is of incomplete data).

    Args:
        data: bytes, or an array of bytes.
        compression_type: "ZLIB", "GZIP", or "" for what is not compressed.
        max_bytes: unfold no more than this, whatever the data says: bytes, "64MiB", or a share of the memory left.

    >>> import zlib
    >>> import forebay as fb
    >>> ds = fb.Dataset.from_tensor_slices([zlib.compress(b"spam " * 3)])
    >>> list(ds.map(lambda x: fb.io.decode_compressed(x, "ZLIB")))
    [b'spam spam spam ']
    """
    compression = compression_of("decode_compressed", compression_type)
    most = parse_size("decode_compressed(max_bytes", max_bytes, memory_left)
    if isinstance(data, bytes):
        return data if compression is None else _unfold(data, compression, most)
    array = np.asarray(data)
    if not all(isinstance(each, bytes) for each in array.flat):
        raise PlanError(f"decode_compressed(): bytes or an array of bytes are needed, not {type(data).__name__}")
    found = [each if compression is None else _unfold(each, compression, most) for each in array.flat]
    return object_array(found).reshape(array.shape)


def _unfold(data: bytes, compression: str, most: int) -> bytes:
    try:
        found = unfolded(data, compression, most)
    except InflateError as error:
        raise DataError(f"decode_compressed(): this is not {compression} data ({error})") from error
    except EOFError:
        raise DataError(f"decode_compressed(): the {compression} data is cut short") from None
    if found is None:
        raise DataError(f"decode_compressed(): the data unfolds to more than {most:,} bytes: raise max_bytes")
    return found


def decode_raw(
    input_bytes: Any, out_type: Any, little_endian: bool = True, fixed_length: int | None = None
) -> NDArray[Any]:
    """The numbers whose bytes a string is made of. Strings in an array, all of one length, give one more axis.

    A single string's numbers are looked at where they are: the array cannot be written into.

    Args:
        input_bytes: bytes, or an array of bytes.
        out_type: dtype of the numbers.
        little_endian: how numbers are laid out.
        fixed_length: make every string so many bytes long first, by a cut or by zeros at its end.

    >>> import forebay as fb
    >>> fb.io.decode_raw(b"\\x01\\x00\\x02\\x00", "uint16")
    array([1, 2], dtype=uint16)
    """
    dtype = np.dtype(out_type)
    if dtype.hasobject or not dtype.itemsize:
        raise PlanError(f"decode_raw(out_type={out_type!r}): it must be a dtype of numbers")
    stored = dtype.newbyteorder("<" if little_endian else ">")
    if isinstance(input_bytes, (bytes, bytearray, memoryview)):
        return _numbers(bytes(input_bytes), stored, fixed_length).astype(dtype, copy=False)
    array = np.asarray(input_bytes)
    rows = [_numbers(each, stored, fixed_length) for each in _strings(array)]
    odd = next((row for row in rows if len(row) != len(rows[0])), None)
    if odd is not None:
        raise DataError(
            f"decode_raw(): all strings must be of one length, and there are {rows[0].nbytes} and {odd.nbytes} bytes: "
            "give fixed_length"
        )
    return np.array(rows, dtype).reshape(*array.shape, -1 if rows else 0)


def _strings(array: NDArray[Any]) -> list[bytes]:
    found: list[Any] = array.astype(object).reshape(-1).tolist()
    if not all(isinstance(each, bytes) for each in found):
        raise PlanError(f"decode_raw(): bytes or an array of bytes are needed, not an array of {array.dtype}")
    return found


def _numbers(data: bytes, stored: "np.dtype[Any]", fixed_length: int | None) -> NDArray[Any]:
    if fixed_length is not None:
        if fixed_length < 1 or fixed_length % stored.itemsize:
            raise PlanError(f"decode_raw(fixed_length={fixed_length}): a multiple of {stored.itemsize} is needed")
        data = data[:fixed_length].ljust(fixed_length, b"\0")
    if len(data) % stored.itemsize:
        raise DataError(f"decode_raw(): {len(data)} bytes are no whole number of {stored.name} ({stored.itemsize})")
    return np.frombuffer(data, stored)
