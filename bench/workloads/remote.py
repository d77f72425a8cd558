"""Lines of a file behind a web server that takes a while to answer: read ahead of need, and without.

The server is a process of its own on this machine. Every answer comes 20 ms late, as from a store in the same region.
"""

from __future__ import annotations

import atexit
import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from bench.pipeline import Open, WrongData, contender
from bench.spec import ROWS_PER_SECOND, AtLeast, Workload

ROWS = 400_000
BATCH = 256
LATENCY = 0.02

_SERVER = """
import asyncio, sys

rows, latency = int(sys.argv[1]), float(sys.argv[2])
data = b"".join(b"%d the quick brown fox jumps over the lazy dog, again\\n" % i for i in range(rows))

async def serve(reader, writer):
    while True:
        try:
            head = (await reader.readuntil(b"\\r\\n\\r\\n")).decode("latin-1").split("\\r\\n")
        except asyncio.IncompleteReadError:
            return writer.close()
        await asyncio.sleep(latency)
        asked = [line.partition("=")[2] for line in head if line.lower().startswith("range:")]
        first, last = (int(each) for each in asked[0].split("-")) if asked else (0, len(data) - 1)
        body = data[first : last + 1]
        lines = ["HTTP/1.1 206 Part" if asked else "HTTP/1.1 200 OK", f"Content-Length: {len(body)}", 'ETag: "1"']
        lines += ["Accept-Ranges: bytes", f"Content-Range: bytes {first}-{first + len(body) - 1}/{len(data)}"]
        answer = "\\r\\n".join([*lines[: 5 if asked else 4], "", ""])
        writer.write(answer.encode() + (b"" if head[0].startswith("HEAD") else body))
        await writer.drain()

async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


def served(rows: int) -> str:
    """The URL of the file."""
    command = [sys.executable, "-c", _SERVER, str(rows), str(LATENCY)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    atexit.register(server.kill)
    assert server.stdout is not None
    return f"http://127.0.0.1:{int(server.stdout.readline())}/lines.txt"


def check(_: Any, rows: int, batches: Iterable[Any]) -> None:
    row = 0
    for batch in batches:
        for line in batch:
            if bytes(line).rstrip(b"\n") != b"%d the quick brown fox jumps over the lazy dog, again" % row:
                raise WrongData(f"line {row} is not what is in the file")
            row += 1


def forebay(url: str, rows: int) -> Open:
    import forebay as fb

    dataset = fb.TextLineDataset(url).batch(BATCH)
    return lambda: dataset


def when_asked(url: str, rows: int) -> Open:
    import forebay as fb

    options = fb.Options(remote=fb.RemoteOptions(read_ahead=0))
    dataset = fb.TextLineDataset(url).batch(BATCH).with_options(options)
    return lambda: dataset


def fsspec_read(url: str, rows: int) -> Open:
    import fsspec

    def batches() -> Iterator[list[bytes]]:
        with fsspec.open(url) as file:
            lines = file.read().splitlines()
        for first in range(0, rows, BATCH):
            yield lines[first : first + BATCH]

    return batches


def fsspec_lines(url: str, rows: int) -> Open:
    import fsspec

    def batches() -> Iterator[list[bytes]]:
        with fsspec.open(url) as file:
            while batch := list(islice(file, BATCH)):
                yield batch

    return batches


WORKLOADS = (
    Workload(
        name="remote",
        title="TextLineDataset() over HTTP, answers 20 ms late",
        unit=ROWS_PER_SECOND,
        rows=ROWS,
        quick_rows=200_000,
        parameters={"batch": BATCH, "latency": LATENCY},
        contenders=(
            contender("forebay", "forebay", forebay, data=served, check=check),
            contender("forebay, read_ahead=0", "forebay", when_asked, data=served, check=check, reference=True),
            contender("fsspec, read()", "fsspec", fsspec_read, data=served, check=check, note="the whole file at once"),
            contender("fsspec, by line", "fsspec", fsspec_lines, data=served, check=check, rows=50_000),
        ),
        targets=(
            AtLeast("forebay", 10, "fsspec, by line"),
            AtLeast("forebay", 1.2, "forebay, read_ahead=0"),
        ),
    ),
)
