"""What a worker process runs: a function, called for every message, until its parent is gone.

Mostly there is one. Those of others come where there was no room for workers of their own (see ``hosts``).
"""

import io
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from typing import Any, NoReturn

from forebay.errors import TransferError
from forebay.run.process.remote_error import shown_value, text_of
from forebay.run.process.segment import Part, Segment
from forebay.run.process.wire import Types, decode, encode

TASK = struct.Struct("<BQIQ")
"""Which segment holds the arguments, its size, the function's number, and the task's own. Without a size, the function
is to go."""
ANSWER = struct.Struct("<BQdQQ")
"""Which segment holds the outcome, its size, the seconds it took, the bytes that the worker has for itself, and which
task it was."""

_PAGE = os.sysconf("SC_PAGE_SIZE")


def main(parent: int, control: int, payload: int, *slots: int) -> None:
    """The life of a worker. All arguments but the first are file descriptors."""
    # The parent decides what Ctrl-C means; it starts workers with the signal blocked, so that none comes before this.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    if isinstance(sys.stdout, io.TextIOWrapper):
        # What a function prints would otherwise be lost with a worker that is killed.
        sys.stdout.reconfigure(line_buffering=True)
    for fd in (control, payload, *slots):
        os.set_inheritable(fd, False)
    types = Types(parent=False)
    functions = {0: _load(payload, types)}
    segments = [Segment(fd) for fd in slots]
    for fd in slots:
        os.close(fd)
    with socket.socket(fileno=control) as connection, open("/proc/self/statm", "rb", buffering=0) as pages:
        while (received := _receive(connection))[0]:
            began = time.perf_counter()
            message, fds = received
            slot, size, number, task = TASK.unpack(message)
            if not size:
                functions.pop(number, None)
                continue
            # Also before a function is read: whoever dies of that has died of this task.
            segments[slot].begun = True
            if fds:
                functions[number] = _load(fds[0], types)
            size = _answered(segments[slot], _outcome(functions[number], segments[slot], size, types), types)
            try:
                connection.send(ANSWER.pack(slot, size, time.perf_counter() - began, _private(pages), task))
            except (BrokenPipeError, ConnectionResetError):
                break
    if os.getppid() != parent:
        # Nobody is left to end a process that hangs in its own clean-up.
        os._exit(0)


def _answered(segment: Segment, outcome: list[Part], types: Types) -> int:
    """Put the outcome there, or why it cannot be put there; its size."""
    try:
        return segment.write(outcome)
    except TransferError as error:
        return segment.write(encode((None, error), types))


def _private(pages: io.FileIO) -> int:
    """Bytes of memory that no other process has."""
    _, resident, shared, *_ = os.pread(pages.fileno(), 128, 0).split()
    return (int(resident) - int(shared)) * _PAGE


def _receive(connection: socket.socket) -> tuple[bytes, list[int]]:
    """A message, and where the function is that comes with it, if any."""
    try:
        message, fds, _, _ = socket.recv_fds(connection, TASK.size, 1, socket.MSG_CMSG_CLOEXEC)
    except ConnectionResetError:
        return b"", []
    return message, fds


def _load(payload: int, types: Types) -> Callable[..., Any]:
    """The function; if it cannot be had, one that says so whenever it is called."""
    segment = Segment(payload)
    os.close(payload)
    try:
        make = decode(segment.read(len(segment)), types)
    except BaseException as raised:
        # Also what a module does that is imported for it, such as to parse a command line and end the program.
        return _refusing(raised, "the function could not be read in the worker process")
    finally:
        segment.close()
    try:
        return make()  # type: ignore[no-any-return]
    except BaseException as raised:
        return _refusing(raised, None)


def _refusing(error: BaseException, text: str | None) -> Callable[..., NoReturn]:
    def refuse(*_: Any) -> NoReturn:
        if text is None:
            raise error
        raise TransferError(f"{text}: {text_of(error)}") from error

    return refuse


def _outcome(function: Callable[..., Any], segment: Segment, size: int, types: Types) -> list[Part]:
    """The parts of a message that holds the result, or else the error."""
    try:
        arguments = decode(segment.read(size), types)
    except BaseException as raised:
        error = TransferError(f"the arguments could not be read in the worker process: {text_of(raised)}")
        error.__cause__ = raised
        return encode((None, error), types)
    try:
        result = function(*arguments)
    except BaseException as raised:
        # Also what would end a program: it is for the consumer's program to end, as it would be without a worker.
        return encode((None, raised), types)
    try:
        return encode((result, None), types)
    except BaseException as raised:
        error = TransferError(f"the result could not be sent from the worker process: {text_of(raised)}")
        error.add_note(f"the result was {shown_value(result)}")
        error.__cause__ = raised
        return encode((None, error), types)
