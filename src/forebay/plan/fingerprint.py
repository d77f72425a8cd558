"""What a function or a piece of data is, as a short digest that is the same in every process.

Functions count by their code, defaults, closure and the globals they name, so that an edited function, or the
same lambda over another captured number, is another function. What does not change what it does, such as where it
stands, its docstring and the names of its variables, does not count. What a program changes while it runs (lists,
dicts, arrays, objects with attributes) counts by its form only: a digest that moves during a run is of no use. Frozen
dataclasses count with their fields, and objects that can be called with what a call does. Our own objects that never
change say with a method ``forebay_fingerprint`` what counts of them. Data that is hashed for its
content is sampled where it is large. Where rows are kept on disk from one run to the next, all of this counts with its
contents (see ``contents``), and nothing but mapped files is sampled.
"""

import dataclasses
import functools
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from forebay.digests import blake2b
from forebay.plan.code import code_parts, names_in
from forebay.plan.contents import contents_of, is_constant, is_users, made_of, stamp

_WHOLE = 1 << 18  # Arrays up to this size are hashed whole ...
_WINDOWS, _WINDOW = 64, 1 << 11  # ... larger ones in so many windows of so many bytes.


def digest(value: Any, contents: bool = False) -> str:
    """A short text that differs when the value does; with `contents`, also when what can be changed in it does."""
    hasher = _Hasher(contents)
    hasher.feed(value)
    return hasher.state.hexdigest()


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
        """A value and all that belongs to it. No call for each level: objects may form chains of any length."""
        levels = [iter((value,))]
        while levels:
            for part in levels[-1]:
                parts = self._begin(part)
                if parts is not None:
                    levels.append(parts)
                    break
            else:
                levels.pop()
                # Without an end, (1, (2, 3)) would be fed as ((1, 2), 3) is. No kind has such a name.
                self._text("\1")

    def _begin(self, value: Any) -> Iterator[Any] | None:
        """Dispatch on what the value is; what there is in it. Objects met before count by when they were first met."""
        kind = type(value)
        self._text(kind.__qualname__)
        if kind is bytes:
            self._text(str(len(value)))
            self.state.update(value)
        elif value is None or kind in (bool, int, float, complex, str):
            self._text(repr(value))
        elif id(value) in self._seen:
            self._text(str(self._seen[id(value)]))
        else:
            self._seen[id(value)] = len(self._seen)
            self._kept.append(value)
            return self._parts(value)
        return None

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
            yield from code_parts(value)
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
            if isinstance(value, types.BuiltinFunctionType) and not isinstance(value.__self__, types.ModuleType):
                yield value.__self__
            elif self._contents and isinstance(value, type):
                yield from contents_of(value)
        elif hasattr(type(value), "forebay_fingerprint"):
            yield from value.forebay_fingerprint()
        elif is_constant(value):
            yield from made_of(value)
        elif self._contents:
            yield from contents_of(value)
        elif is_users(type(value).__module__):
            yield from self._lasting(value)

    def _lasting(self, value: Any) -> Iterator[Any]:
        """What of an object stays as it is in a run: what a call of it does, and the fields of a frozen dataclass."""
        kind = type(value)
        if dataclasses.is_dataclass(kind) and kind.__dataclass_params__.frozen:  # type: ignore[attr-defined]
            for field in dataclasses.fields(kind):
                # Those that do not compare are often caches.
                if field.compare:
                    yield field.name
                    yield self._captured(getattr(value, field.name, None))
        call = next((vars(base)["__call__"] for base in kind.__mro__ if "__call__" in vars(base)), None)
        if isinstance(call, types.FunctionType):
            yield call

    def _array(self, array: Any) -> Iterator[Any]:
        yield str(array.dtype)
        yield array.shape
        if array.dtype.hasobject:
            yield tuple(array.reshape(-1)[: None if self._contents else 1000].tolist())
        elif array.nbytes <= _WHOLE:
            yield np.ascontiguousarray(array).tobytes()
        elif self._contents and stamp(array) is None:
            # Where it lies: as bytes, and as their text, it would take several times its size.
            self.state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        else:
            if self._contents:
                yield stamp(array)
            rows = max(1, _WINDOW * len(array) // array.nbytes)
            for start in np.linspace(0, len(array) - rows, _WINDOWS).astype(int).tolist():
                yield np.ascontiguousarray(array[start : start + rows]).tobytes()

    def _function(self, function: types.FunctionType) -> Iterator[Any]:
        names = names_in(function.__code__)
        yield function.__code__
        for default in function.__defaults__ or ():
            yield from self._named(default, names)
        yield tuple(sorted((function.__kwdefaults__ or {}).items()))
        for cell in function.__closure__ or ():
            try:
                yield from self._named(cell.cell_contents, names)
            except ValueError:  # Not bound yet: a function that refers to itself while it is being made.
                yield "unbound"
        for name in sorted(names & function.__globals__.keys()):
            yield name
            yield from self._named(function.__globals__[name], names)

    def _named(self, value: Any, names: set[str]) -> Iterator[Any]:
        """What a function refers to; of a module of the user's own, what the function names of it."""
        yield self._captured(value)
        modules = [value] if isinstance(value, types.ModuleType) else []
        for module in modules:
            for name in sorted(names & vars(module).keys()) if is_users(module.__name__) else ():
                each = vars(module)[name]
                yield name
                yield self._captured(each)
                if isinstance(each, types.ModuleType) and each not in modules:
                    modules.append(each)

    def _captured(self, value: Any) -> Any:
        """What a function refers to. An array may be its scratch space, so by itself only its form counts."""
        if isinstance(value, np.ndarray) and not self._contents:
            return str(value.dtype), value.shape
        return value
