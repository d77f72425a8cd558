"""Functions given to ``map`` that are known to have another form, which takes whole columns."""

import builtins
import dis
import functools
import types
from collections.abc import Callable
from typing import Any

from forebay.errors import PlanError
from forebay.io.column_function import ColumnFunction
from forebay.io.example import BatchParser, ExampleParser, parse_example, parse_single_example

_ELEMENT = object()
"""Stands for a function's argument."""
# Instructions that change nothing that is looked at here. What is pushed to mark a call is left out on both sides.
_NOTHING = {"CACHE", "COPY_FREE_VARS", "NOP", "PRECALL", "PUSH_NULL", "RESUME"}
_MOST_INSTRUCTIONS = 64


class _NotSimple(Exception):
    """The function does more than call another one."""


def column_form(function: Callable[..., Any]) -> ExampleParser | BatchParser | ColumnFunction | None:
    """What does the same as the function on whole columns; None if that is not certain.

    Certain are a ``ColumnFunction``, an ``ExampleParser``, a ``functools.partial`` of a parser, and a function of one
    argument whose code is exactly one call of a parser with that argument and with features that are a global,
    captured or constant value.
    """
    if isinstance(function, (ExampleParser, ColumnFunction)):
        return function
    try:
        if isinstance(function, functools.partial):
            called, args, keywords = function.func, (_ELEMENT, *function.args), function.keywords
            if function.args:
                return None
        elif isinstance(function, types.FunctionType):
            called, args, keywords = _only_call(function)
        else:
            return None
    except _NotSimple:
        return None
    return _parser(called, args, keywords)


def _parser(called: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> ExampleParser | BatchParser | None:
    if called is not parse_single_example and called is not parse_example:
        return None
    given = dict(zip(("serialized", "features", "example_names", "name"), args))
    if given.keys() & keywords.keys() or len(args) > 4:
        return None
    given |= keywords
    if given.pop("serialized", None) is not _ELEMENT or any(value is _ELEMENT for value in given.values()):
        return None
    try:
        features = given.get("features")
        parser = features if isinstance(features, ExampleParser) else ExampleParser(features)  # type: ignore[arg-type]
    except PlanError:
        # The call itself will say so.
        return None
    return parser if called is parse_single_example else BatchParser(parser)


@functools.lru_cache(maxsize=64)
def _instructions(code: types.CodeType) -> tuple[dis.Instruction, ...]:
    return tuple(dis.get_instructions(code))


def _only_call(function: types.FunctionType) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """The call that is all that a function of one argument does; _NotSimple if it does anything else."""
    code = function.__code__
    if code.co_argcount != 1 or code.co_kwonlyargcount or code.co_flags & (0x04 | 0x08 | 0x20 | 0x80 | 0x200):
        raise _NotSimple
    if len(code.co_code) > 2 * _MOST_INSTRUCTIONS:
        raise _NotSimple
    stack: list[Any] = []
    names: tuple[str, ...] = ()
    call: tuple[Any, tuple[Any, ...], dict[str, Any]] | None = None
    for step in _instructions(code):
        name = step.opname
        if name in _NOTHING:
            continue
        if call is not None:
            if name == "RETURN_VALUE" and not stack:
                return call
            raise _NotSimple
        if name in ("CALL", "CALL_KW"):
            if name == "CALL_KW":
                names = stack.pop()
            values = stack[len(stack) - step.arg :] if step.arg else []
            del stack[len(stack) - len(values) :]
            if len(stack) != 1 or len(values) < len(names):
                raise _NotSimple
            split = len(values) - len(names)
            call = stack.pop(), tuple(values[:split]), dict(zip(names, values[split:]))
        elif name == "KW_NAMES":
            names = code.co_consts[step.arg or 0]
        else:
            stack.append(_loaded(function, step, stack))
    raise _NotSimple


def _loaded(function: types.FunctionType, step: dis.Instruction, stack: list[Any]) -> Any:
    """The value that an instruction puts on the stack."""
    name = step.opname
    if name == "LOAD_FAST" and step.argval == function.__code__.co_varnames[0]:
        return _ELEMENT
    if name == "LOAD_CONST":
        return step.argval
    if name == "LOAD_GLOBAL":
        for scope in (function.__globals__, vars(builtins)):
            if step.argval in scope:
                return scope[step.argval]
    elif name == "LOAD_DEREF" and step.argval in function.__code__.co_freevars:
        assert function.__closure__ is not None
        try:
            return function.__closure__[function.__code__.co_freevars.index(step.argval)].cell_contents
        except ValueError:
            raise _NotSimple from None
    elif name in ("LOAD_ATTR", "LOAD_METHOD") and stack:
        # Of modules only: what an object's attribute is, its class may decide anew every time.
        owner = stack.pop()
        if isinstance(owner, types.ModuleType) and step.argval in vars(owner):
            return vars(owner)[step.argval]
    raise _NotSimple
