"""What a function or a piece of data is, as a short digest that is the same in every process.

Functions count by their code, defaults, closure and the globals they name, so that an edited function, or the
same lambda over another captured number, is another function. What does not change what it does, such as where it
stands, its docstring and the names of its variables, does not count. What a program changes while it runs (lists,
dicts, arrays, objects with attributes) counts by its form only: a digest that moves during a run is of no use. Data
that is hashed for its content is sampled where it is large. Where rows are kept on disk from one run to the next, all
of this counts with its contents, and nothing but mapped files is sampled.
"""

import dis
import functools
import inspect
import sys
import types
from collections.abc import Iterator
from hashlib import blake2b
from typing import Any

import numpy as np

_WHOLE = 1 << 18  # Arrays up to this size are hashed whole ...
_WINDOWS, _WINDOW = 64, 1 << 11  # ... larger ones in so many windows of so many bytes.


def digest(value: Any, contents: bool = False) -> str:
    """A short text that differs when the value does; with `contents`, also when what can be changed in it does."""
    hasher = _Hasher(contents)
    hasher.feed(value)
    return hasher.state.hexdigest()


def _is_mapped(array: Any) -> bool:
    """Whether the array is a memmap, or a view of one."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


def function_name(function: Any) -> str:
    """What to call a function in plans and errors."""
    if isinstance(function, functools.partial):
        return f"partial({function_name(function.func)})"
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return str(name).rpartition("<locals>.")[2]


class _Hasher:
    def __init__(self, contents: bool) -> None:
        self._contents = contents
        self.state = blake2b(digest_size=8)
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # An id means something only as long as its object lives.

    def feed(self, value: Any) -> None:
        """Dispatch on what the value is; objects met before count by when they were first met."""
        kind = type(value)
        self._text(kind.__qualname__)
        if value is None or kind in (bool, int, float, complex, str, bytes):
            self._text(repr(value))
            return
        if id(value) in self._seen:
            self._text(str(self._seen[id(value)]))
            return
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        for part in self._parts(value):
            self.feed(part)

    def _text(self, text: str) -> None:
        self.state.update(text.encode("utf-8", "surrogatepass"))
        self.state.update(b"\0")

    def _parts(self, value: Any) -> Iterator[Any]:
        if isinstance(value, np.ndarray):
            yield from self._array(value)
        elif isinstance(value, (np.generic, np.dtype)):
            yield str(value.dtype if isinstance(value, np.generic) else value)
            yield repr(value)
        elif isinstance(value, tuple):
            yield from value
        elif isinstance(value, frozenset):
            yield from sorted(digest(item, self._contents) for item in value)
        elif isinstance(value, types.CodeType):
            yield from _code(value)
        elif isinstance(value, types.FunctionType):
            yield from self._function(value)
        elif isinstance(value, types.MethodType):
            yield value.__func__
            yield value.__self__
        elif isinstance(value, functools.partial):
            yield from (value.func, value.args, tuple(sorted(value.keywords.items())))
        elif isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType)):
            yield getattr(value, "__module__", None)
            yield getattr(value, "__qualname__", getattr(value, "__name__", ""))
        elif self._contents:
            yield from _contents(value)

    def _array(self, array: Any) -> Iterator[Any]:
        yield str(array.dtype)
        yield array.shape
        if array.dtype.hasobject:
            yield tuple(array.reshape(-1)[: None if self._contents else 1000].tolist())
        elif array.nbytes <= _WHOLE:
            yield np.ascontiguousarray(array).tobytes()
        elif self._contents and not _is_mapped(array):
            # Where it lies: as bytes, and as their text, it would take several times its size.
            self.state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        else:
            rows = max(1, _WINDOW * len(array) // array.nbytes)
            for start in np.linspace(0, len(array) - rows, _WINDOWS).astype(int).tolist():
                yield np.ascontiguousarray(array[start : start + rows]).tobytes()

    def _function(self, function: types.FunctionType) -> Iterator[Any]:
        yield function.__code__
        yield function.__defaults__
        yield tuple(sorted((function.__kwdefaults__ or {}).items()))
        for cell in function.__closure__ or ():
            try:
                yield self._captured(cell.cell_contents)
            except ValueError:  # Not bound yet: a function that refers to itself while it is being made.
                yield "unbound"
        for name in sorted(_names(function.__code__)):
            if name in function.__globals__:
                yield name
                yield self._captured(function.__globals__[name])

    def _captured(self, value: Any) -> Any:
        """What a function refers to. An array may be its scratch space, so by itself only its form counts."""
        if isinstance(value, np.ndarray) and not self._contents:
            return str(value.dtype), value.shape
        return value


def _code(code: types.CodeType) -> Iterator[Any]:
    """The instructions, with each constant where it is used.

    By their place among the constants, a docstring would shift all others; it is the one that no instruction uses.
    """
    steps = bytearray()
    constants = []
    argument = 0
    for opcode, low in zip(code.co_code[::2], code.co_code[1::2]):
        argument = argument << 8 | low
        if opcode == dis.EXTENDED_ARG:
            continue
        if opcode in dis.hasconst:
            constants.append(code.co_consts[argument])
            argument = 0
        steps += opcode.to_bytes(2, "little") + argument.to_bytes(4, "little")
        argument = 0
    # Local variables are numbered in the instructions. Those that callers pass by name have no other.
    named = code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]
    yield from (bytes(steps), tuple(constants), code.co_names, code.co_flags & ~inspect.CO_NESTED)
    yield from (code.co_argcount, code.co_posonlyargcount, named)


def _contents(value: Any) -> Iterator[Any]:
    """What is in a container or an object, and for an object of the user's own class also what that does."""
    if isinstance(value, dict):
        yield from value.items()
    elif isinstance(value, set):
        yield from sorted(digest(item, True) for item in value)
    elif isinstance(value, (list, bytearray)):
        yield from value
    elif hasattr(value, "__array__"):
        yield _as_array(value)
    else:
        kind = type(value)
        if "site-packages" not in str(getattr(sys.modules.get(kind.__module__), "__file__", None)):
            yield from (each for _, each in sorted(vars(kind).items()) if isinstance(each, types.FunctionType))
        for name in getattr(kind, "__slots__", ()):
            yield getattr(value, name, None)
        yield from sorted(getattr(value, "__dict__", {}).items())


def _as_array(value: Any) -> Any:
    """Tensors and tables of other libraries; what is not in this machine's memory counts by its type."""
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        return None


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names
