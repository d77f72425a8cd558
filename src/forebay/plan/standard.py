"""Objects of the standard library and of NumPy that pickle refuses, although they tell all that they are made of."""

import gc
import io
import os
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from forebay.plan.made import file_stamp

# By module and name: the attributes that one of them could be made anew of.
_MADE_OF = {
    ("_csv", "Dialect"): (
        *("delimiter", "doublequote", "escapechar", "lineterminator", "quotechar", "quoting", "skipinitialspace"),
        "strict",
    ),
    ("_struct", "Struct"): ("format",),
    ("numpy", "busdaycalendar"): ("weekmask", "holidays"),
    ("re", "Match"): ("re", "string", "pos", "endpos", "regs"),
    ("unicodedata", "UCD"): ("unidata_version",),
}
# Whose objects have taken in bytes, which their digest stands for.
_HASHES = ("_blake2", "_hashlib", "_md5", "_sha1", "_sha2", "_sha256", "_sha3", "_sha512")
# Of one that gives as many bytes as it is asked for, or fewer than tell two states apart.
_ENOUGH, _FEW = 32, 16


def standard_parts(value: Any) -> tuple[Any, ...] | None:
    """What such an object is made of; None if it is another one, or nothing can be learned of it."""
    kinds = [(str(base.__module__), base.__name__) for base in type(value).__mro__]
    for kind in kinds:
        if kind in _MADE_OF:
            return tuple(getattr(value, name) for name in _MADE_OF[kind])
        if kind[0] in _HASHES:
            return _hash(value)
    if kinds[0] == ("functools", "KeyWrapper"):
        # The function that cmp_to_key was given is found nowhere else.
        return tuple(each for each in gc.get_referents(value) if each is not type(value))
    if isinstance(value, types.GetSetDescriptorType):
        return value.__objclass__, value.__name__
    if isinstance(value, io.IOBase):
        return _file(value)
    return _of_ctypes(value, kinds)


def noted_in(dtype: np.dtype[Any]) -> Iterator[Any]:
    """Notes on a dtype and on those in it, which none of their texts tells; nothing where there are none."""
    if dtype.metadata:
        yield dict(dtype.metadata)
    if dtype.subdtype is not None:
        yield from noted_in(dtype.subdtype[0])
    for name in dtype.names or ():
        notes = tuple(noted_in(dtype[name]))
        if notes:
            yield name, notes


def _hash(state: Any) -> tuple[Any, ...]:
    """Its digest, which stands for all that it has taken in; if that is short, those that it would have next too."""
    size = state.digest_size
    if not size or size >= _FEW:
        return state.name, size, state.digest() if size else state.digest(_ENOUGH)
    further = [state.copy() for _ in range(_ENOUGH // size)]
    for number, each in enumerate(further):
        each.update(bytes([number]))
    return (state.name, size, state.digest(), *(each.digest() for each in further))


def is_field(value: Any) -> bool:
    """Whether it is what ctypes has made of an entry of ``_fields_``, which tells as much."""
    return (type(value).__module__, type(value).__name__) == ("_ctypes", "CField")


def _file(file: Any) -> tuple[Any, ...] | None:
    name, mode = getattr(file, "name", None), getattr(file, "mode", None)
    text = _text_layer(file) if isinstance(file, io.TextIOWrapper) else ()
    if isinstance(name, (str, bytes)):
        if file.closed or not file.readable():
            return name, mode, *text[:2]
        return (name, mode, file_stamp(name), *text, file.tell()) if _is_named(file, name) else None
    inner = getattr(file, "buffer", None) or getattr(file, "raw", None)
    if name is not None or inner is None:
        # A number that it was opened by says nothing of what is in it.
        return None
    return mode, *text, inner, file.tell()


def _is_named(file: Any, name: str | bytes) -> bool:
    """Whether what it reads is in the file of that name, and not in an archive or in one that was there before."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(name))
    except (OSError, ValueError, AttributeError):
        return False


def _text_layer(file: io.TextIOWrapper) -> tuple[Any, ...]:
    """How bytes become text. What `newline` was is found nowhere else than among what the object refers to."""
    return file.encoding, file.errors, [each for each in gc.get_referents(file) if type(each) in (str, tuple)]


def _of_ctypes(value: Any, kinds: list[tuple[str, str]]) -> tuple[Any, ...] | None:
    """Texts, and functions of libraries. What else has an address in it could lead anywhere."""
    if ("ctypes", "c_char_p") in kinds or ("ctypes", "c_wchar_p") in kinds:
        return (value.value,)
    if ("_ctypes", "CFuncPtr") in kinds:
        library = (getattr(value, "_objects", None) or {}).get("0")
        # One that a prototype was called for does not tell its name.
        name = getattr(value, "__name__", None)
        if name is not None and library is not None and hasattr(library, "_FuncPtr"):
            return name, value.restype, value.argtypes, library, *((value.errcheck,) if value.errcheck else ())
    return None
