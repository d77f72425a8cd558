"""Which places files may be read from and written to: what an allow-list of protocols and hosts means."""

import re

from forebay.errors import PlanError

# Links of a chained URL that only change how others are read: they lead to no place of their own.
_WRAPPERS = frozenset({"blockcache", "cached", "dir", "filecache", "libarchive", "simplecache", "tar", "zip"})
_ALIASES = {"gcs": "gs", "local": "file", "s3a": "s3"}
# Whose hosts are names of machines, which mean the same in capitals and may come with a user and a port.
_MACHINES = frozenset({"ftp", "http", "https", "sftp", "ssh", "webhdfs"})
_PROTOCOL = re.compile(r"[A-Za-z][A-Za-z0-9+._-]*")
_AUTHORITY = re.compile(r"(?:[^@\s\\]*@)?(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]*))?")


def check_entry(entry: object) -> None:
    """PlanError unless it is a protocol, or a protocol and a host or bucket."""
    if isinstance(entry, str):
        protocol, separator, host = entry.partition("://")
        host = host.removesuffix("/")
        if _PROTOCOL.fullmatch(protocol) and (not separator or (host and not set(host) & set("/?#@\\ "))):
            return
    raise PlanError(
        f"RemoteOptions.allow: {entry!r} must be a protocol such as 'file', or a protocol with a host or a bucket "
        "such as 's3://my-bucket' or 'https://data.example.org'"
    )


def allowed(path: str, allow: tuple[str, ...]) -> bool:
    """Whether every place that a path or a URL leads to is in the list."""
    return all(_link_allowed(link, allow) for link in _links(path))


def protocols(path: str) -> list[str]:
    """Those of a URL and of the links of a chain."""
    return [_protocol(link) for link in _links(path)]


def _links(path: str) -> list[str]:
    # A bare word is a protocol in a chain, and by itself the name of a file.
    return path.split("::") if "::" in path or "://" in path else [f"file://{path}"]


def _protocol(link: str) -> str:
    protocol, separator, _ = link.partition("://")
    if separator and len(protocol) > 1:
        return protocol.lower()
    if link.startswith("data:"):
        return "data"
    # As fsspec reads a chain: a bare word is a protocol, anything else a path of this machine.
    return "file" if set(link) & set("/.\\") else link.lower()


def _link_allowed(link: str, allow: tuple[str, ...]) -> bool:
    protocol = _ALIASES.get(_protocol(link), _protocol(link))
    if protocol in _WRAPPERS:
        return True
    rest = link.partition("://")[2]
    place = re.split(r"[/?#]", rest, maxsplit=1)[0]
    return any(_covers(entry, protocol, place) for entry in allow)


def _covers(entry: str, protocol: str, place: str) -> bool:
    named, separator, host = entry.partition("://")
    named = named.lower()
    if _ALIASES.get(named, named) != protocol:
        return False
    if not separator:
        return True
    host = host.removesuffix("/")
    if protocol not in _MACHINES:
        return host == place
    asked, given = _AUTHORITY.fullmatch(place), _AUTHORITY.fullmatch(host)
    if asked is None or given is None or asked["host"].lower() != given["host"].lower():
        return False
    return not given["port"] or given["port"] == asked["port"]
