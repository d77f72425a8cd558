"""The servers, and how the file systems of this process find them."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass

import fsspec
import pytest

import forebay as fb
from remote.servers import Proxy, moto

BUCKET = "lake"
# For one who has no time: faults are seen and over in a moment.
HASTY = fb.RemoteOptions(timeout=0.1, backoff=0.001, deadline=60, retries=50)


@pytest.fixture(scope="session")
def port() -> Iterator[int]:
    yield from moto()


@dataclass
class Store:
    """A bucket behind a proxy."""

    proxy: Proxy

    def url(self, protocol: str, name: str) -> str:
        if protocol == "s3":
            return f"s3://{BUCKET}/{name}"
        return f"{protocol}://127.0.0.1:{self.proxy.port}/{BUCKET}/{name}"

    def put(self, name: str, data: bytes) -> None:
        fsspec.filesystem("s3").pipe_file(f"{BUCKET}/{name}", data, ACL="public-read")

    def get(self, name: str) -> bytes:
        data: bytes = fsspec.filesystem("s3").cat_file(f"{BUCKET}/{name}")
        return data

    def names(self) -> list[str]:
        system = fsspec.filesystem("s3")
        system.invalidate_cache()
        return sorted(each.removeprefix(f"{BUCKET}/") for each in system.find(BUCKET))


@pytest.fixture(scope="session")
def proxy(port: int) -> Iterator[Proxy]:
    made = Proxy(port)
    # Tries of the libraries' own would be made within one of Forebay's, and answers could not be told apart.
    settings = {
        "endpoint_url": f"http://127.0.0.1:{made.port}",
        "key": "reader",
        "secret": "secret",
        "use_listings_cache": False,
        "config_kwargs": {"retries": {"max_attempts": 0}},
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(fsspec.config.conf, "s3", settings)
        # For worker processes.
        patch.setitem(os.environ, "FSSPEC_S3", json.dumps(settings))
        fsspec.filesystem("s3").mkdir(BUCKET, acl="public-read")
        yield made
    made.close()


@pytest.fixture
def store(proxy: Proxy) -> Store:
    proxy.clean()
    return Store(proxy)
