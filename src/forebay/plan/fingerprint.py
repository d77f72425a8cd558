"""What a function or a piece of data is, as a short digest that is the same in every process.

Functions count by their code, defaults, closure and the globals they name, so that an edited function, or the
same lambda over another captured number, is another function. What does not change what it does, such as where it
stands, its docstring and the names of its variables, does not count. What a program changes while it runs (lists,
dicts, arrays, objects with attributes) counts by its form only: a digest that moves during a run is of no use. Frozen
dataclasses count with their fields, and objects that can be called with what a call does. Our own objects that never
change say with a method ``forebay_fingerprint`` what counts of them. Data that is hashed for its
content is sampled where it is large. Where rows are kept on disk from one run to the next, all of this counts with its
contents (see ``contents``), and nothing but mapped files is sampled (see ``mapping``). No object ends a run by what it
raises while it is looked at.
"""

import dataclasses
import dis
import functools
import inspect
import os
import types
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

from forebay.block import Column
from forebay.digests import blake2b
from forebay.plan.made import Unknown, is_constant, is_in_library, is_users, made_of, reduced, strides_of
from forebay.plan.site import frames_to_caller
from forebay.plan.text import written

_WHOLE = 1 << 18  # Arrays up to this size are hashed whole ...
_WINDOWS, _WINDOW = 64, 1 << 11  # ... larger ones in so many windows of so many bytes.
_DISPATCHING = frozenset({"_clear_cache", "dispatch", "register", "registry"})
# Whose texts tell all of their objects. By id: metaclasses of the user's own may find classes equal.
_WRITTEN = frozenset(map(id, (bool, int, float, complex, str)))


def digest(value: Any, contents: bool = False) -> str:
    """A short text that differs when the value does; with `contents`, also when what can be changed in it does."""
    hasher = _Hasher(contents)
    hasher.feed(value)
    if hasher.unknown:
        warnings.warn(
            f"nothing tells whether {_listed(hasher.unknown)} that a function refers to will be the same in another "
            "run: what cache() or snapshot() keeps on disk is made anew. Make it inside of the function, or give its "
            "class a __reduce__ that says what it is made of",
            UserWarning,
            stacklevel=frames_to_caller(),
        )
    return hasher.result()


def _listed(kinds: list[str]) -> str:
    return " and ".join(f"the {kind}" for kind in sorted(set(kinds)))


def function_name(function: Any) -> str:
    """What to call a function in plans and errors."""
    if isinstance(function, functools.partial):
        return f"partial({function_name(function.func)})"
    try:
        name = getattr(function, "__qualname__", None)
    except Exception:
        # Objects of the user's own may raise anything.
        name = None
    return str(name or type(function).__qualname__).rpartition("<locals>.")[2]


class _Hasher:
    def __init__(self, contents: bool, around: tuple[int, ...] = ()) -> None:
        self._contents = contents
        self._around = around
        self._open: list[int] = []
        self.state = blake2b(digest_size=8)
        self._seen: dict[int, int] = {}
        self._kept: list[Any] = []  # An id means something only as long as its object lives.
        self._copied: set[int] = set()  # Arrays of columns: functions get copies, and never see how these lie.
        self._of_libraries: _Hasher | None = None
        self.unknown: list[str] = []

    def result(self) -> str:
        if self._of_libraries is not None:
            self._text(self._of_libraries.state.hexdigest())
        return self.state.hexdigest()

    def feed(self, value: Any) -> None:
        """A value and all that belongs to it. No call for each level: objects may form chains of any length."""
        levels = [self._begun(value, iter((value,)))]
        while levels:
            for part, parts in levels[-1]:
                if parts is not None:
                    levels.append(self._begun(part, parts))
                    self._open.append(id(part))
                    break
            else:
                levels.pop()
                if levels:
                    self._open.pop()
                # Without an end, (1, (2, 3)) would be fed as ((1, 2), 3) is. No kind has such a name.
                self._text("\1")

    def _begun(self, value: Any, parts: Iterator[Any]) -> Iterator[tuple[Any, Iterator[Any] | None]]:
        """The parts of a value, each with those in it. What objects raise when they are looked at makes it unknown."""
        try:
            for part in parts:
                yield part, self._begin(part)
        except Exception:
            unknown = Unknown(value)
            yield unknown, self._begin(unknown)

    def _begin(self, value: Any) -> Iterator[Any] | None:
        """Dispatch on what the value is; what there is in it. Objects met before count by when they were first met."""
        kind = type(value)
        self._text(kind.__qualname__)
        if kind is bytes:
            self._text(str(len(value)))
            self.state.update(value)
        elif value is None or id(kind) in _WRITTEN:
            self._text(written(value))
        elif id(value) in self._seen:
            self._text(str(self._seen[id(value)]))
        elif id(value) in self._around:
            self._text(f"around {self._around.index(id(value))}")
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
            if self._contents:
                if id(value) not in self._copied and (strides := strides_of(value)) is not None:
                    yield strides
                yield from _contents_of(value)
        elif isinstance(value, np.generic):
            yield str(value.dtype)
            yield from _number(value)
            if self._contents:
                yield from _contents_of(value)
        elif isinstance(value, np.dtype):
            yield str(value)
            yield repr(value)
            if self._contents:
                yield from _contents_of(value)
        elif isinstance(value, Unknown):
            yield value.kind
            if self._contents:
                self.unknown.append(value.kind)
                yield os.urandom(16)
        elif type(value) is tuple or (isinstance(value, tuple) and not self._contents):
            yield from value
        elif type(value) is frozenset or (isinstance(value, frozenset) and not self._contents):
            yield from sorted(map(self._apart, value))
        elif isinstance(value, types.CodeType):
            yield from _code(value)
        elif isinstance(value, types.FunctionType):
            if self._contents and is_in_library(value):
                # What libraries remember changes with whatever else a program does.
                self._of_libraries = self._of_libraries or _Hasher(contents=False)
                self._of_libraries.feed(value)
            else:
                yield from self._function(value)
        elif isinstance(value, types.MethodType):
            yield value.__func__
            yield value.__self__
        elif isinstance(value, functools.partial):
            yield from (value.func, value.args, tuple(sorted(value.keywords.items())))
            yield from vars(value).items() if self._contents else ()
        elif isinstance(value, (type, types.ModuleType, types.BuiltinFunctionType)):
            yield getattr(value, "__module__", None)
            yield getattr(value, "__qualname__", getattr(value, "__name__", ""))
            if isinstance(value, types.BuiltinFunctionType) and not isinstance(value.__self__, types.ModuleType):
                yield value.__self__
            elif self._contents and isinstance(value, type):
                yield from _contents_of(value)
        elif hasattr(type(value), "forebay_fingerprint"):
            yield from value.forebay_fingerprint()
        elif self._contents:
            if isinstance(value, Column):
                buffers = value.buffers()
                self._kept += buffers
                self._copied.update(map(id, buffers))
            yield from _contents_of(value)
        elif is_constant(value):
            yield from made_of(value, reduced(value))
        elif is_users(type(value).__module__):
            yield from self._lasting(value)
        kind = type(value)
        if self._contents and kind.__module__ != "builtins" and not isinstance(value, type):
            yield kind if is_users(kind.__module__) else None

    def _apart(self, item: Any) -> str:
        """The digest of what has no place among others. What is around it may be in it once more."""
        hasher = _Hasher(self._contents, (*self._around, *self._open))
        hasher.feed(item)
        self.unknown += hasher.unknown
        return hasher.result()

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
        elif self._contents and (mark := _mapped(array)) is None:
            # Where it lies: as bytes, and as their text, it would take several times its size.
            self.state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
        else:
            if self._contents:
                yield mark
            array = np.atleast_1d(array)
            rows = max(1, _WINDOW * len(array) // array.nbytes)
            for start in np.linspace(0, len(array) - rows, _WINDOWS).astype(int).tolist():
                yield np.ascontiguousarray(array[start : start + rows]).tobytes()

    def _function(self, function: types.FunctionType) -> Iterator[Any]:
        if self._contents and _dispatches(function):
            # Beside the functions that it chooses from, it remembers which it has chosen.
            ours = {name: each for name, each in vars(function).items() if name not in _DISPATCHING}
            yield from (tuple(function.registry.items()), tuple(sorted(ours.items())))  # type: ignore[attr-defined]
            return
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
        if self._contents:
            yield tuple(sorted(vars(function).items()))
        referred = sorted(names & function.__globals__.keys())
        if self._contents and not is_users(function.__globals__.get("__name__")):
            self._of_libraries = self._of_libraries or _Hasher(contents=False)
            self._of_libraries.feed(tuple((name, function.__globals__[name]) for name in referred))
            return
        for name in referred:
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


def _contents_of(value: Any) -> Iterator[Any]:
    # Loaded by those who keep rows on disk.
    from forebay.plan.contents import contents_of

    return contents_of(value)


def _mapped(array: Any) -> Any:
    # Loaded by the same.
    from forebay.plan.mapping import stamp

    return stamp(array)


def _number(value: np.generic) -> Iterator[Any]:
    """What is in a NumPy scalar. The text of a row of fields leaves out entries, that of a user's class anything."""
    if value.dtype.names:
        yield from (value[name] for name in value.dtype.names)  # type: ignore[index]
    elif type(value).__module__ == "numpy" and value.dtype.kind != "V":
        yield repr(value)
    else:
        yield value.tobytes()
        yield from sorted(getattr(value, "__dict__", {}).items())


def _code(code: types.CodeType) -> Iterator[Any]:
    """The instructions, with each constant where it is used.

    By their place among the constants, a docstring would shift all others; it is the one that no instruction uses.
    """
    steps = bytearray()
    constants = []
    argument = 0
    places = []
    for opcode, low in zip(code.co_code[::2], code.co_code[1::2]):
        places.append(len(steps))
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
    # Which instructions a handler watches over is said nowhere else.
    if code.co_exceptiontable:
        yield tuple(_handlers(code.co_exceptiontable, [*places, len(steps)]))


def _dispatches(function: types.FunctionType) -> bool:
    """Whether ``functools.singledispatch`` has made it."""
    return function.__globals__ is vars(functools) and vars(function).keys() >= _DISPATCHING


def names_in(code: types.CodeType) -> set[str]:
    """All names that code refers to, with that of the functions inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= names_in(constant)
    return names


def _handlers(table: bytes, places: list[int]) -> Iterator[tuple[int, ...]]:
    """From where to where, the handler's place and how it finds the stack: numbers in digits of six bits."""
    numbers = []
    number = 0
    for byte in table:
        number = number << 6 | byte & 63
        if not byte & 64:
            numbers.append(number)
            number = 0
    for start, length, target, stack in zip(*[iter(numbers)] * 4):
        yield places[start], places[start + length], places[target], stack
