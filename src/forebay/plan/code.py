"""What a compiled function does: not its docstring, the names of its variables or where it stands."""

import dis
import inspect
import types
from collections.abc import Iterator
from typing import Any


def code_parts(code: types.CodeType) -> Iterator[Any]:
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


def names_in(code: types.CodeType) -> set[str]:
    """All names that the code, and that of functions made in it, looks up outside of its own variables."""
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
