"""The file system of a URL: allowed, there, and led on to no other place."""

from functools import cache
from typing import Any

from forebay.allow import protocols
from forebay.errors import FileError, ForebayError, RemoteError
from forebay.remote_run import check_allowed, current, refusal
from forebay.storage.effort import asked
from forebay.storage.input_file import file_error
from forebay.storage.requests import ThreadRequest

_EXTRAS = {"gcs": "gcs", "gs": "gcs", "http": "http", "https": "http", "s3": "s3", "s3a": "s3"}


def connect(url: str) -> tuple[Any, str]:
    """The file system, and what it calls the object. FileError if there is none, or it may not be used."""
    check_allowed(url)
    allow = current().options.allow
    links = protocols(url)
    try:
        import fsspec

        guards = {} if allow is None else {each: _guarded(each, allow) for each in links if each in ("http", "https")}
        if len(links) == 1:
            found = fsspec.core.url_to_fs(url, **guards)
        else:
            # One link may have to be read to make the next.
            run = current()
            found = asked(url, run, lambda: ThreadRequest(lambda: fsspec.core.url_to_fs(url, **guards)))
    except ImportError as error:
        raise _missing(url, links, error) from error
    except ForebayError as error:
        if isinstance(error.__cause__, ImportError):
            raise _missing(url, links, error.__cause__) from error
        raise
    except Exception as error:
        # File systems raise what their libraries raise.
        raise file_error(url, error) from error
    system, name = found
    return system, name


def _missing(url: str, links: list[str], error: ImportError) -> FileError:
    extras = sorted({_EXTRAS[each] for each in links if each in _EXTRAS})
    how = f"; pip install 'forebay[{','.join(extras)}]'" if extras else ""
    return FileError(url, f"a library is missing that reads {' and '.join(links)} ({error}){how}")


def _guarded(protocol: str, allow: tuple[str, ...]) -> dict[str, Any]:
    """Settings of fsspec's HTTP file system, and among them one that looks where servers lead on to."""
    import fsspec

    client = dict(fsspec.config.conf.get(protocol, {}).get("client_kwargs", {}))
    client["trace_configs"] = [*client.get("trace_configs", ()), _redirects(allow)]
    return {"client_kwargs": client}


@cache
def _redirects(allow: tuple[str, ...]) -> Any:
    """One for each list: fsspec knows file systems by their settings, and would make a new one every time."""
    import aiohttp
    from yarl import URL

    async def look(session: Any, context: Any, params: Any) -> None:
        headers = params.response.headers
        target = str(params.url.join(URL(headers.get("Location") or headers.get("URI") or "")))
        if (why := refusal(target, allow)) is not None:
            raise RemoteError(str(params.url), f"its server leads on to {target}, which {why}")

    config = aiohttp.TraceConfig()
    config.on_request_redirect.append(look)
    return config
