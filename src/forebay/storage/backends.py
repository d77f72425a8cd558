"""How stores are asked for an object: any that fsspec knows, and S3 and the web in ways that tell more.

What fsspec returns is bytes and nothing else, all at once. From S3 and web servers, bytes are taken as they come, so
that what is there when a connection breaks is kept; and every answer tells which version of the object it is from.
"""

import base64
import re
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from forebay.errors import FileError, RemoteError
from forebay.storage.requests import LoopRequest, Put, Request, ThreadRequest

CHANGED = "has changed while it was being read; start again, or see to it that nobody writes to it"

_CHUNK = 1 << 18
_VERSIONS = ("ETag", "etag", "generation", "mtime", "LastModified", "Last-Modified", "created")
_PLAIN_MD5 = re.compile(r'"?([0-9a-f]{32})"?')
# Whose sum of the bytes an ETag is not, though it looks like one.
_ENCRYPTED = ("aws:kms", "aws:kms:dsse")
_NO_HEAD = frozenset({403, 405, 501})
# A server that ignores ranges may send a small file as a whole.
_WHOLE = 4 << 20


class Backend:
    """An object in a store that fsspec reads. `md5` is the sum of its bytes, in hexadecimal, if it is known.

    ``fetch`` gives bytes. Where `checks` is False, nothing tells which version they are from but asking ``describe``
    again.
    """

    checks = False

    def __init__(self, path: str, system: Any, name: str) -> None:
        self.path = path
        self.md5: str | None = None
        self._system = system
        self._name = name
        self._size = -1
        self._version: str | None = None

    def describe(self) -> Request:
        """What the store says about the object: a dict with ``size``, ``type`` and whatever tells versions apart."""
        self._system.invalidate_cache(self._name)
        return self._call("info", self._name)

    def learn(self, info: dict[str, Any]) -> tuple[int | None, str | None]:
        """Size and version. What comes later is held against these."""
        size, version = _size_and_version(info)
        self._size, self._version = -1 if size is None else size, version
        self.md5 = _base64_md5(info.get("md5Hash") or info.get("Content-MD5"))
        return size, version

    def confirm(self, info: dict[str, Any]) -> None:
        """RemoteError if the object is another one by now."""
        if _size_and_version(info) != (self._size, self._version):
            raise self._changed()

    def fetch(self, start: int, stop: int) -> Request:
        """A range of the bytes."""
        return self._call("cat_file", self._name, start=start, end=stop)

    def _call(self, method: str, *arguments: Any, **options: Any) -> Request:
        system = self._system
        if not runs_on_loop(system):
            return ThreadRequest(lambda: getattr(system, method)(*arguments, **options))

        async def work(put: Put) -> None:
            put(await getattr(system, f"_{method}")(*arguments, **options))

        return LoopRequest(system.loop, work)

    def _changed(self) -> RemoteError:
        return RemoteError(self.path, CHANGED)


class _S3(Backend):
    """By way of s3fs's client."""

    checks = True

    def learn(self, info: dict[str, Any]) -> tuple[int | None, str | None]:
        """An ETag is an MD5 sum if the object was written in one piece, unless it is encrypted."""
        found = super().learn(info)
        self._etag = info.get("ETag") or None
        plain = _PLAIN_MD5.fullmatch(str(self._etag))
        self.md5 = plain[1] if plain else None
        return found

    def describe(self) -> Request:
        """Not from a listing, which may be old."""
        return self._call("info", self._name, refresh=True)

    def fetch(self, start: int, stop: int) -> Request:
        """Bytes as they come."""
        system = self._system
        bucket, key, version = system.split_path(self._name)
        chosen = {} if version is None else {"VersionId": version}

        async def work(put: Put) -> None:
            answer = await system._call_s3(
                "get_object", Bucket=bucket, Key=key, Range=f"bytes={start}-{stop - 1}", **chosen
            )
            body = answer["Body"]
            try:
                if self._etag is not None and answer.get("ETag") != self._etag:
                    raise self._changed()
                if answer.get("ServerSideEncryption") in _ENCRYPTED or answer.get("SSECustomerAlgorithm"):
                    self.md5 = None
                while chunk := await body.read(_CHUNK):
                    put(chunk)
            finally:
                body.close()

        return LoopRequest(system.loop, work)


class _Web(Backend):
    """By way of the session of fsspec's HTTP file system, with its settings."""

    checks = True

    def learn(self, info: dict[str, Any]) -> tuple[int | None, str | None]:
        """Whichever of the two a server sends."""
        self._tag = info.get("ETag"), info.get("Last-Modified")
        return super().learn(info)

    def describe(self) -> Request:
        """By HEAD, and where that does not tell, by asking for the first byte. Some servers answer any HEAD with a
        length of 0, so that alone tells nothing."""

        async def work(put: Put) -> None:
            info = await self._ask("HEAD", {}, _described)
            if info is None or not info["size"]:
                info = await self._ask("GET", {"Range": "bytes=0-0"}, _described)
            put(info)

        return LoopRequest(self._system.loop, work)

    def fetch(self, start: int, stop: int) -> Request:
        """Bytes as they come."""

        async def work(put: Put) -> None:
            async def take(answer: Any) -> None:
                tag = answer.headers.get("ETag"), answer.headers.get("Last-Modified")
                if any(was is not None and now is not None and was != now for was, now in zip(self._tag, tag)):
                    raise self._changed()
                drop = self._before(answer, start, stop)
                left = stop - start
                async for chunk in answer.content.iter_chunked(_CHUNK):
                    dropped = min(drop, len(chunk))
                    drop -= dropped
                    wanted = chunk[dropped : dropped + left] if answer.status == 200 else chunk
                    left -= len(wanted)
                    if wanted:
                        put(wanted)

            await self._ask("GET", {"Range": f"bytes={start}-{stop - 1}"}, take)

        return LoopRequest(self._system.loop, work)

    def _before(self, answer: Any, start: int, stop: int) -> int:
        """How many bytes come that were not asked for, before those that were."""
        if answer.status == 200:
            if (start, stop) != (0, self._size) and self._size > _WHOLE:
                raise FileError(
                    self.path,
                    "its server ignores ranges and would send the whole file for every read: copy it, or let fsspec do "
                    f"so (simplecache::{self.path})",
                    start,
                )
            return start
        told = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", answer.headers.get("Content-Range", ""))
        if told is not None and told[2] not in ("*", str(self._size)):
            raise self._changed()
        if told is not None and int(told[1]) != start:
            raise FileError(self.path, f"its server sent bytes from {int(told[1]):,} on instead", start)
        return 0

    async def _ask(self, method: str, headers: dict[str, str], use: Callable[[Any], Awaitable[Any]]) -> Any:
        system = self._system
        session = await system.set_session()
        options = dict(system.kwargs)
        # As it is: lengths and ranges of a body that is compressed on the way say nothing about the file.
        headers = {**options.pop("headers", {}), "Accept-Encoding": "identity", **headers}
        options.setdefault("allow_redirects", True)
        async with session.request(method, system.encode_url(self._name), headers=headers, **options) as answer:
            if answer.status == 404:
                raise FileNotFoundError(self.path)
            if answer.status in (401, 403) and method == "GET":
                raise PermissionError(self.path)
            if method == "HEAD" and answer.status in _NO_HEAD:
                return None
            if answer.status != 416 or headers.get("Range") != "bytes=0-0":
                answer.raise_for_status()
            return await use(answer)


def _size_and_version(info: dict[str, Any]) -> tuple[int | None, str | None]:
    size = info.get("size")
    if not isinstance(size, int):
        return None, None
    known = [str(info[key]) for key in _VERSIONS if info.get(key)]
    return size, f"{size} {' '.join(known)}" if known else None


async def _described(answer: Any) -> dict[str, Any]:
    headers = answer.headers
    told = re.fullmatch(r"bytes (?:\d+-\d+|\*)/(\d+)", headers.get("Content-Range", ""))
    size = int(told[1]) if told else None
    if size is None and answer.status == 200 and headers.get("Content-Encoding", "identity") in ("", "identity"):
        size = int(headers["Content-Length"]) if "Content-Length" in headers else None
    if size is None and answer.status == 416:
        # There is no first byte.
        size = 0
    kept = {key: headers[key] for key in ("ETag", "Last-Modified", "Content-MD5") if key in headers}
    return {"type": "file", "size": size, **kept}


def backend_of(path: str, system: Any, name: str) -> Backend:
    """The way to ask for an object of that file system."""
    kind: type[Backend] = Backend
    if runs_on_loop(system):
        for module, made, own in (
            ("s3fs", "S3FileSystem", _S3),
            ("fsspec.implementations.http", "HTTPFileSystem", _Web),
        ):
            known = getattr(sys.modules.get(module), made, None)
            if known is not None and issubclass(type(system), known):
                kind = own
    return kind(path, system, name)


def runs_on_loop(system: Any) -> bool:
    """Whether its calls are coroutines on a loop of fsspec's. Those that wrap another file system need not be."""
    from fsspec.asyn import AsyncFileSystem

    return issubclass(type(system), AsyncFileSystem) and not system.asynchronous and "fs" not in vars(system)


def _base64_md5(text: Any) -> str | None:
    if not isinstance(text, str):
        return None
    try:
        digest = base64.b64decode(text, validate=True)
    except ValueError:
        return None
    return digest.hex() if len(digest) == 16 else None
