"""An S3 server in a process of its own, and a proxy before it that answers badly when it is told to."""

import http.client
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field

_MOTO = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
server.stop()
"""


def moto() -> Iterator[int]:
    """The port of an S3 server, for as long as the iterator is held."""
    command = [sys.executable, "-W", "ignore", "-c", _MOTO]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.communicate("")


@dataclass
class Answer:
    """What the server behind the proxy said."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    def head(self, length: int | None = None) -> bytes:
        lines = [f"HTTP/1.1 {self.status} Answer"]
        lines += [f"{name}: {value}" for name, value in self.headers if name.lower() not in _OWN]
        lines += [f"Content-Length: {len(self.body) if length is None else length}"]
        return "\r\n".join([*lines, "", ""]).encode("latin-1")


_OWN = ("connection", "content-length", "transfer-encoding")


class Hang(Exception):
    """Keep the connection, and never say anything more."""


Fault = Callable[[socket.socket, Answer], None]


def status(code: int) -> Fault:
    """An error of the server's."""

    def send(client: socket.socket, answer: Answer) -> None:
        client.sendall(Answer(code, [("Content-Type", "text/plain")], b"not today").head() + b"not today")

    return send


def cut(client: socket.socket, answer: Answer) -> None:
    """Half of the body, then the connection ends."""
    client.sendall(answer.head() + answer.body[: len(answer.body) // 2])
    raise ConnectionError


def reset(client: socket.socket, answer: Answer) -> None:
    """Half of the body, then the connection is reset."""
    client.sendall(answer.head() + answer.body[: len(answer.body) // 2])
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raise ConnectionError


def short(client: socket.socket, answer: Answer) -> None:
    """Half of the body, as if it were all that was asked for."""
    half = answer.body[: len(answer.body) // 2]
    client.sendall(answer.head(len(half)) + half)


def stall(client: socket.socket, answer: Answer) -> None:
    """No answer at all."""
    raise Hang


def stall_half_way(client: socket.socket, answer: Answer) -> None:
    """Half of the body, and then nothing."""
    client.sendall(answer.head() + answer.body[: len(answer.body) // 2])
    raise Hang


def slow(client: socket.socket, answer: Answer) -> None:
    """Everything, a little at a time."""
    client.sendall(answer.head())
    part = max(len(answer.body) // 10, 1)
    for first in range(0, len(answer.body), part):
        client.sendall(answer.body[first : first + part])
        time.sleep(0.005)


def flip(client: socket.socket, answer: Answer) -> None:
    """One bit of the body is another."""
    changed = bytearray(answer.body)
    changed[len(changed) // 2] ^= 1
    client.sendall(answer.head() + bytes(changed))


def no_length(client: socket.socket, answer: Answer) -> None:
    """An answer to HEAD that says that there are no bytes."""
    client.sendall(answer.head(0))


def redirect(url: str) -> Fault:
    """The object is said to be elsewhere."""

    def send(client: socket.socket, answer: Answer) -> None:
        client.sendall(Answer(302, [("Location", url)], b"").head())

    return send


def whole(body: bytes) -> Fault:
    """All of an object, whatever was asked for: what servers do that know no ranges."""

    def send(client: socket.socket, answer: Answer) -> None:
        client.sendall(Answer(200, [], body).head() + body)

    return send


@dataclass
class Proxy:
    """Passes requests on to a port of this machine.

    Requests for a range are counted, and answered by `script`, one fault after another, then by `always`; None stands
    for no fault. Requests for anything else are passed on, unless `everything` is set.
    """

    upstream: int
    script: list[Fault | None] = field(default_factory=list)
    always: Fault | None = None
    everything: bool = False
    ranges: list[tuple[int, int]] = field(default_factory=list)
    hangs: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released for every request that is left hanging."""
    most_at_once: int = 0

    def __post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._now = 0
        self._clients: set[socket.socket] = set()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def clean(self) -> None:
        """Behave from now on."""
        with self._lock:
            self.script, self.always, self.everything, self.ranges, self.most_at_once = [], None, False, [], 0
            self.hangs = threading.Semaphore(0)

    def close(self) -> None:
        with self._lock:
            clients = list(self._clients)
        for each in (self._listener, *clients):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                with self._lock:
                    self._clients.add(client)
                thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with suppress(OSError), closing(client), client.makefile("rb") as requests:
                while self._one(client, requests):
                    pass
        finally:
            with self._lock:
                self._clients.discard(client)

    def _one(self, client: socket.socket, requests: "socket.SocketIO | object") -> bool:
        lines: list[str] = []
        while (line := requests.readline().decode("latin-1").strip()) or not lines:  # type: ignore[attr-defined]
            if not line:
                return False
            lines.append(line)
        method, path, _ = lines[0].split(" ", 2)
        headers = dict(each.split(": ", 1) for each in lines[1:])
        known = {name.lower(): value for name, value in headers.items()}
        if known.get("expect") == "100-continue":
            client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            headers = {name: value for name, value in headers.items() if name.lower() != "expect"}
        body = requests.read(int(known.get("content-length", 0)))  # type: ignore[attr-defined]
        asked = known.get("range") if method == "GET" else None
        with self._lock:
            self._now += 1
            self.most_at_once = max(self.most_at_once, self._now)
            if asked:
                first, last = asked.removeprefix("bytes=").split("-")
                self.ranges.append((int(first), int(last) + 1))
            fault = None
            if asked or self.everything:
                fault = self.script.pop(0) if self.script else self.always
        try:
            answer = self._ask(method, path, headers, body)
        finally:
            # Whoever has the answer may ask for more before this thread gets any further.
            with self._lock:
                self._now -= 1
        try:
            if fault is not None:
                fault(client, answer)
            else:
                length = None if method != "HEAD" else int(dict(answer.headers).get("Content-Length", 0))
                client.sendall(answer.head(length) + answer.body)
        except Hang:
            self.hangs.release()
            # Until the other side has had enough.
            client.recv(1)
            return False
        return True

    def _ask(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer:
        with closing(http.client.HTTPConnection("127.0.0.1", self.upstream)) as server:
            server.request(method, path, body or None, headers)
            answer = server.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())
