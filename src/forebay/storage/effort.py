"""Tries at one read: which failures are worth another one, when it comes, and what is said when there are no more."""

import random
import time
from collections.abc import Callable
from queue import Empty
from typing import Any

from forebay.errors import ForebayError, RemoteError
from forebay.remote_run import RemoteRun
from forebay.storage.input_file import cause_text, file_error
from forebay.storage.requests import Request
from forebay.uninterrupted import GLANCE

_LONGEST_PAUSE = 10.0
# Answers of a server that may be another one the next time: too slow, too early, too many requests.
_PASSING = frozenset({408, 425, 429})
_FINAL = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, ForebayError)
# Failures of connections that are no OSError, by name, since none of these libraries need be there.
_BROKEN = frozenset(
    {
        "ClientConnectionError",
        "ClientPayloadError",
        "EOFError",
        "FlexibleChecksumError",
        "HTTPClientError",
        "HTTPException",
        "IncompleteReadError",
        "ProtocolError",
        "ResponseParserError",
        "SSHException",
    }
)


class Silence(TimeoutError):
    """Nothing came for too long."""


class ShortBody(OSError):
    """A server gave fewer bytes than were asked for, as if that were all."""


class Effort:
    """Begins with the first try. `offset` is where in the file, for errors; None if it is about all of it."""

    def __init__(self, path: str, run: RemoteRun, offset: int | None = None) -> None:
        self._path = path
        self._run = run
        self._offset = offset
        options = run.options
        assert options.retries is not None
        assert options.deadline is not None
        assert options.timeout is not None
        assert options.backoff is not None
        self._retries = options.retries
        self._deadline = options.deadline
        self._patience = options.timeout
        self._pause = options.backoff
        self._began = time.monotonic()
        self._tries = 1

    def wait(self, request: Request) -> Any | None:
        """The next thing that comes of a request, None at its end; Silence if it does not come in time."""
        end = time.monotonic() + min(self._patience, self._left())
        while True:
            try:
                return request.next(max(min(GLANCE, end - time.monotonic()), 0.001))
            except Empty:
                self._run.glance()
            if time.monotonic() >= end:
                request.cancel()
                raise Silence("no answer")

    def again(self, cause: Exception) -> None:
        """Return when it is time for another try, or raise the error there is."""
        if isinstance(cause, ForebayError):
            raise cause
        if not passing(cause):
            raise file_error(self._path, cause, self._offset) from cause
        if isinstance(cause, Silence):
            # Perhaps it is only slow.
            self._patience *= 2
        # About half of it is left to chance, so that readers that failed together do not come back together.
        pause = min(self._pause * 2 ** (self._tries - 1), _LONGEST_PAUSE) * random.uniform(0.5, 1.0)
        late = self._left() <= pause
        if late or self._tries > self._retries:
            raise self._failure(cause, late) from cause
        self._tries += 1
        _pause(self._run, pause)

    def _left(self) -> float:
        return self._deadline - (time.monotonic() - self._began)

    def _failure(self, cause: Exception, late: bool) -> RemoteError:
        took = time.monotonic() - self._began
        tries = f"{self._tries} attempt{'s' * (self._tries != 1)} in {took:.1f} s"
        named = type(cause).__name__
        text = cause_text(cause)
        last = text if text == named or isinstance(cause, (Silence, ShortBody)) else f"{named}: {text}"
        limit = f"deadline={self._deadline:g}" if late else f"retries={self._retries}"
        return RemoteError(
            self._path,
            f"could not be read, {tries} (RemoteOptions.{limit}), the last: {last}; see whether the server can be "
            "reached, or allow more (Options.remote)",
            self._offset,
        )


def asked(path: str, run: RemoteRun, make: Callable[[], Request]) -> Any:
    """What comes of a request that gives one thing, tried again where that may help. FileError if it does not."""
    effort = Effort(path, run)
    while True:
        request = make()
        try:
            answer = effort.wait(request)
            # To its end, so that the connection can be used again.
            effort.wait(request)
        except BaseException as error:
            request.cancel()
            if not isinstance(error, Exception):
                raise
            effort.again(error)
        else:
            request.settle()
            return answer


def passing(error: BaseException) -> bool:
    """Whether a failure may be gone the next time."""
    if isinstance(error, _FINAL):
        return False
    status = _status(error)
    # What a library makes of a failure may say less than the failure.
    origin = error.__cause__ or error.__context__
    if status is None:
        if any(kind.__name__ in _BROKEN for kind in type(error).__mro__):
            return True
        status = _status(origin)
    if status is not None:
        return status >= 500 or status in _PASSING
    return isinstance(error, OSError) or (origin is not None and passing(origin))


def _status(error: BaseException | None) -> int | None:
    """What an HTTP server said, where the library kept it with the error."""
    response = getattr(error, "response", None)
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:
        status = getattr(error, "status", None) or getattr(error, "code", None)
    return status if isinstance(status, int) else None


def _pause(run: RemoteRun, seconds: float) -> None:
    """Wait, but not for a run that is being closed."""
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        run.glance()
        time.sleep(min(left, GLANCE))
