"""Exceptions that cross between processes with their traceback, cause and context."""

import ast
import pickle
import reprlib
import sys
import traceback
from collections.abc import Callable
from types import CodeType, TracebackType
from typing import Any

from forebay.errors import FunctionError

Frame = tuple[str, str, str, int, str]
"""File, name, qualified name, line and module: what it takes to show a frame."""
Dumps = Callable[[Any], bytes]


def reduce_exception(error: BaseException, dumps: Dumps) -> tuple[Any, ...]:
    """What a pickler needs for it. Always works: if the exception cannot be pickled, its text is sent.

    Cause and context travel as state, which pickle reads after the object itself is known, so that exceptions may
    refer to each other in circles.
    """
    blob: bytes | None = None
    why = ""
    try:
        blob = dumps(error.__reduce_ex__(pickle.HIGHEST_PROTOCOL))
    except Exception as refused:
        why = text_of(refused)
    shown = "" if blob else "".join(traceback.format_exception(error, chain=False))
    links = (error.__cause__, error.__context__, error.__suppress_context__)
    arguments = (blob, text_of(error), why, shown, frames_of(error.__traceback__))
    return rebuild_exception, arguments, links, None, None, _link


def rebuild_exception(blob: bytes | None, text: str, why: str, shown: str, frames: list[Frame]) -> BaseException:
    """The exception as it was, or a FunctionError that tells all there is to tell about it."""
    error: BaseException | None = None
    if blob is not None:
        try:
            error = _construct(pickle.loads(blob))
        except Exception as refused:
            why = text_of(refused)
    if error is None:
        error = FunctionError(f"{text} (the exception itself could not be sent from its process: {why})")
        if shown:
            error.add_note(shown.rstrip())
    return error.with_traceback(traceback_of(frames))


def _construct(reduced: Any) -> BaseException:
    if not isinstance(reduced, tuple) or len(reduced) not in (2, 3):
        raise TypeError("it is pickled in a way of its own")
    make, arguments, *state = reduced
    try:
        error = make(*arguments)
    except Exception:
        # Many exceptions take other arguments than those they pass on to Exception, and so cannot be called again.
        if not isinstance(make, type):
            raise
        error = make.__new__(make, *arguments)
    if not isinstance(error, BaseException):
        raise TypeError(f"it was read back as {type(error).__name__}")
    if state and state[0] is not None:
        error.__setstate__(state[0])
    return error


def _link(error: BaseException, links: tuple[Any, Any, bool]) -> None:
    error.__cause__, error.__context__, error.__suppress_context__ = links


def frames_of(tb: TracebackType | None) -> list[Frame]:
    """The frames of a traceback, outermost first, without those of Forebay's own worker loop."""
    frames = []
    while tb is not None:
        code = tb.tb_frame.f_code
        module = str(tb.tb_frame.f_globals.get("__name__", ""))
        if not module.startswith(__package__):
            frames.append((code.co_filename, code.co_name, code.co_qualname, tb.tb_lineno, module))
        tb = tb.tb_next
    return frames


def traceback_of(frames: list[Frame]) -> TracebackType | None:
    """A real traceback that shows these frames, so that tools and people see what they are used to."""
    tb: TracebackType | None = None
    for file, name, qualified, line, module in reversed(frames):
        code = _FRAME.replace(co_filename=file, co_name=name, co_qualname=qualified, co_firstlineno=line)
        frame = eval(code, {"getframe": sys._getframe, "__name__": module})
        tb = TracebackType(tb, frame, frame.f_lasti, line)
    return tb


def _frame_code() -> CodeType:
    tree = ast.parse("getframe()", mode="eval")
    for node in ast.walk(tree):
        if isinstance(node, ast.expr):
            # Without columns nothing is underlined in the user's line, about which these columns know nothing.
            node.col_offset = node.end_col_offset = -1
    return compile(tree, "", "eval")


_FRAME = _frame_code()


def text_of(error: BaseException) -> str:
    """Type and message, whatever the exception does when it is printed."""
    return "".join(traceback.format_exception_only(error)).strip()


def shown_value(value: Any) -> str:
    """A short repr, whatever the object does when it is printed."""
    return f"{_REPR.repr(value)} ({type(value).__module__}.{type(value).__qualname__})"


_REPR = reprlib.Repr()
_REPR.maxother = _REPR.maxstring = 200
