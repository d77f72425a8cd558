"""The parent's end of one worker process."""

import functools
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any, Protocol

from forebay.digests import blake2b
from forebay.errors import InternalError, PlanError, TransferError
from forebay.run.executor import Job
from forebay.run.process.remote_error import shown_value, text_of
from forebay.run.process.segment import SMALLEST, Part, Segment
from forebay.run.process.wire import Types, decode, encode
from forebay.run.process.worker import ANSWER, TASK
from forebay.uninterrupted import uninterrupted

SLOTS = 2
"""Calls that a worker may hold: the one it is on, and one to go on with while the answer travels."""
TYPICAL = 24 << 20
"""Bytes that a worker has for itself, roughly, as long as nothing is known of it: an interpreter with NumPy."""
FIRST = TYPICAL + SLOTS * SMALLEST
"""The same with its shared memory."""
PATIENCE = 0.5
"""What workers get to end by themselves, then after SIGTERM, then after SIGKILL. Together below two seconds."""
# Behind a call that takes longer than this nothing is lined up: another worker may well be free before.
_SHORT = 0.1

# A parent that is killed takes its workers along from the first line on: imports can take seconds. The number 1 is
# PR_SET_PDEATHSIG, 9 is SIGKILL.
_START = """
import ctypes, json, os, sys
sys.path[:], sys.argv[:], numbers = json.loads(sys.argv[1])
if (prctl := getattr(ctypes.CDLL(None), "prctl", None)) is not None:
    prctl(1, 9, 0, 0, 0)
if os.getppid() != numbers[0]:
    os._exit(0)
from forebay.run.process.worker import main
main(*numbers)
"""


class Home(Protocol):
    """Where a task comes from."""

    launch: "Launch"


class Task:
    """A job, whose it is, and how the workers died that were on it."""

    __slots__ = ("deaths", "dropped", "home", "job", "number", "slot")

    def __init__(self, job: Job[Any], home: Home) -> None:
        self.job = job
        self.home: Any = home
        self.deaths: list[str] = []
        self.slot = 0
        self.number = 0
        """What the worker calls it that has it."""
        self.dropped = False
        """Whether nobody waits for it any more. A worker cannot skip it: later messages rely on what came with it."""

    def finish(self, result: Any, error: BaseException | None, seconds: float = 0.0) -> None:
        """Tell whoever waits for the job."""
        if not self.dropped:
            self.job.finish(result, error, seconds, seconds)

    def drop(self, error: BaseException) -> None:
        """Have nobody wait for it any more."""
        self.finish(None, error)
        self.dropped = True


class Launch:
    """Everything that workers of one executor have in common: the function, and where they run."""

    def __init__(self, make: Callable[[], Callable[..., Any]], name: str) -> None:
        if not hasattr(os, "memfd_create") or not sys.executable:
            raise PlanError(f"{name}: worker processes need Linux and a Python interpreter to start")
        self.name = name
        self.types = Types()
        try:
            parts = encode(make, self.types)
        except Exception as raised:
            # The user's function is in what `make` holds, and the reason names it.
            raise PlanError(f"{name}: the function cannot be sent to a worker process: {text_of(raised)}") from raised
        digest = blake2b(digest_size=16)
        for part in parts:
            digest.update(part)
        self.digest = digest.hexdigest()
        try:
            uninterrupted(lambda: self._keep(parts))
        except TransferError as error:
            raise PlanError(f"{name}: {error}") from error
        self.path = [entry for entry in sys.path if isinstance(entry, str)]
        self.argv = [str(argument) for argument in getattr(sys, "argv", [])]
        try:
            self.directory: str | None = os.getcwd()
        except FileNotFoundError:
            self.directory = None

    def _keep(self, parts: list[Part]) -> None:
        segment, self.payload = Segment.create()
        # Whoever is interrupted while it makes an executor has nothing yet that it could close.
        self.close = weakref.finalize(self, os.close, self.payload)
        """After this no more workers can be started."""
        segment.write(parts)
        segment.close()

    def runs_like(self, other: "Launch") -> bool:
        """Whether a worker that was started for one finds what the function of the other needs."""
        return (self.path, self.argv, self.directory) == (other.path, other.argv, other.directory)

    def command(self, *numbers: int) -> list[str]:
        """The command line of a worker."""
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
        flags += ["-X", "faulthandler"]
        settings = json.dumps([self.path, self.argv, numbers])
        return [sys.executable, *flags, "-c", _START, settings, f"forebay worker: {self.name}"]


@functools.cache
def _hash_seed() -> str:
    """One for all workers: a function that goes over a set of strings does the same in each of them."""
    return str(int.from_bytes(os.urandom(4), "little"))


class Child:
    """One worker process. Made, used and ended by the dispatcher's thread alone.

    It refuses all others: two that hand over tasks, or take answers, would mix up whose they are.
    That thread must not end before the worker: the kernel kills a worker together with the thread that started it.
    """

    def __init__(self, launch: Launch) -> None:
        self._owner = threading.get_ident()
        self.tasks: deque[Task] = deque()
        self._sent = 0
        self.stopped = False
        """Whether it was killed for a task that nobody waits for any more: that is held against no other."""
        self._free = list(range(SLOTS))
        self._types = launch.types.copy()
        self._functions = {launch: 0}
        self._next_function = 1
        self._seconds = float("inf")
        self._answered = False
        self._private = TYPICAL
        with ExitStack() as undo:
            self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            undo.callback(self.socket.close)
            with theirs, ExitStack() as fds:
                self._segments: list[Segment] = []
                numbers = []
                for _ in range(SLOTS):
                    segment, fd = Segment.create()
                    fds.callback(os.close, fd)
                    undo.callback(segment.close)
                    self._segments.append(segment)
                    numbers.append(fd)
                passed = (theirs.fileno(), launch.payload, *numbers)
                self.process = subprocess.Popen(
                    launch.command(os.getpid(), *passed),
                    stdin=subprocess.DEVNULL,
                    pass_fds=passed,
                    cwd=launch.directory,
                    env={"PYTHONHASHSEED": _hash_seed(), **os.environ},
                )
            undo.callback(self._reap)
            self.pidfd = os.pidfd_open(self.process.pid)
            self.socket.setblocking(False)
            undo.pop_all()

    @property
    def has_room(self) -> bool:
        """Whether it makes sense to send one more task."""
        return len(self.tasks) < (SLOTS if self._seconds < _SHORT else 1)

    @property
    def begun(self) -> bool:
        """Whether it is, or was when it died, on the first of its tasks. The others are never begun."""
        return bool(self.tasks) and self._segments[self.tasks[0].slot].begun

    @property
    def stillborn(self) -> bool:
        """Whether it never came so far as to begin with anything."""
        return not self._answered and not self.begun

    @property
    def memory(self) -> int:
        """Bytes that it has for itself, as it last told, and those that it shares with its parent alone."""
        return self._private + sum(map(len, self._segments))

    def send(self, task: Task) -> None:
        """Hand the task over. Raises TransferError if its arguments cannot be sent."""
        self._check_owner()
        slot = task.slot = self._free[-1]
        launch = task.home.launch
        types = self._types.copy()
        if launch not in self._functions:
            types.known.update(launch.types.known)
        try:
            size = self._segments[slot].write(encode(task.job.arguments, types))
        except TransferError:
            raise
        except BaseException as raised:
            # Whatever it is that the user's own pickling raises: it is no reason for this thread to end.
            raise self._unsendable(task.job.arguments, raised) from raised
        self._segments[slot].begun = False
        self._free.pop()
        self._sent += 1
        task.number = self._sent
        self._types = types
        self.tasks.append(task)
        try:
            if launch in self._functions:
                self.socket.send(TASK.pack(slot, size, self._functions[launch], task.number))
            else:
                number = self._functions[launch] = self._next_function
                self._next_function += 1
                socket.send_fds(self.socket, [TASK.pack(slot, size, number, task.number)], [launch.payload])
        except OSError:
            # Dead, which its pidfd tells as well; the task is taken back with the others then.
            return

    def part_from(self, home: Home, error: BaseException) -> None:
        """Have no more to do with whoever gave it tasks."""
        for task in self.tasks:
            if task.home is home:
                task.drop(error)
        number = self._functions.pop(home.launch, None)
        if number is not None:
            with suppress(OSError):
                self.socket.send(TASK.pack(0, 0, number, 0))
        self._stop_if_unwanted()

    def _stop_if_unwanted(self) -> None:
        """Not for what waits behind a call of somebody else's, before that is done."""
        if any(task.dropped and (task is self.tasks[0] or self._segments[task.slot].begun) for task in self.tasks):
            # Its function may go on for ever, and nobody waits for it.
            self.stopped = True
            self.stop(signal.SIGKILL)

    def _unsendable(self, arguments: tuple[Any, ...], reason: BaseException) -> TransferError:
        for index, argument in enumerate(arguments):
            try:
                encode(argument, self._types.copy())
            except BaseException as raised:
                error = TransferError(f"argument {index} cannot be sent to a worker process: {text_of(raised)}")
                error.add_note(f"the argument is {shown_value(argument)}")
                return error
        return TransferError(f"the arguments cannot be sent to a worker process: {text_of(reason)}")

    def receive(self) -> bool | None:
        """Finish the oldest task with the answer that has come; None if there is none yet, False at the end of all."""
        self._check_owner()
        try:
            message = self.socket.recv(ANSWER.size)
        except BlockingIOError:
            return None
        except ConnectionResetError:
            # Reported once, ahead of the answers that were sent before the worker died.
            return self.receive()
        if not message:
            return False
        slot, size, self._seconds, self._private, number = ANSWER.unpack(message)
        self._answered = True
        result: Any = None
        error: BaseException | None = None
        if not self.tasks or (self.tasks[0].slot, self.tasks[0].number) != (slot, number):
            raise InternalError(f"a worker process has answered what it was not asked: call {number} in slot {slot}")
        task = self.tasks.popleft()
        try:
            parts = self._segments[slot].read(size)
            if not task.dropped:
                result, error = decode(parts, self._types)
        except BaseException as raised:
            error = TransferError(f"the result could not be read from the worker process: {text_of(raised)}")
            error.__cause__ = raised
        self._free.append(slot)
        task.finish(result, error, self._seconds)
        self._stop_if_unwanted()
        return True

    def _check_owner(self) -> None:
        if threading.get_ident() != self._owner:
            raise InternalError("a worker process was used by a thread that it does not belong to")

    def hang_up(self) -> None:
        """Let the worker end by itself as soon as it is done with its call."""
        # Closing alone would go unnoticed while a process that the user forked has this end too.
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def stop(self, how: signal.Signals) -> None:
        """Send a signal, unless it has ended already."""
        self.process.send_signal(how)

    def ended(self, seconds: float) -> bool:
        """Wait that long at most for the process to end."""
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(seconds * 1000))

    def bury(self) -> str:
        """After the process has ended: give everything back, and say how it died."""
        self._check_owner()
        code = self._reap()
        os.close(self.pidfd)
        self.socket.close()
        for segment in self._segments:
            segment.close()
        if code >= 0:
            return f"exit code {code}"
        name = signal.Signals(-code).name if -code in list(signal.Signals) else f"signal {-code}"
        return "SIGKILL, as sent by the out-of-memory killer" if name == "SIGKILL" else name

    def _reap(self) -> int:
        if self.process.poll() is None:
            self.process.kill()
        return self.process.wait()


def end_all(children: list[Child]) -> None:
    """End them, busy or not."""
    for child in children:
        if child.tasks or child.stillborn:
            # One that is still importing would only notice afterwards that nobody wants it any more.
            child.stop(signal.SIGTERM)
        child.hang_up()
    for how in (signal.SIGTERM, signal.SIGKILL, None):
        until = time.monotonic() + PATIENCE
        for child in children:
            if not child.ended(max(0.0, until - time.monotonic())) and how is not None:
                child.stop(how)
    for child in children:
        child.bury()
