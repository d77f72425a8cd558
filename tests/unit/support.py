"""What the unit tests share: exact comparison, runs that end in an error, fresh interpreters."""

import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings

import forebay as fb

# Always the same examples, and no deadline: a loaded machine is no fault of ours.
fixed = settings(
    derandomize=True,
    database=None,
    deadline=None,
    max_examples=100,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)

# Blocks of one row, of a few rows, and of the usual size; as written and optimised.
SETTINGS = [
    fb.Options(optimize=optimize, block_bytes=block_bytes)
    for optimize in (True, False)
    for block_bytes in (1, 100, 1 << 20)
]


few = settings(fixed, max_examples=40)


def assert_same(actual: Any, expected: Any, where: str = "value") -> None:
    """Same structure, types, dtypes, shapes and bits."""
    assert type(actual) is type(expected), f"{where}: {actual!r} where {expected!r} was expected"
    if isinstance(expected, np.ndarray):
        assert actual.dtype == expected.dtype, f"{where}: dtype {actual.dtype}, expected {expected.dtype}"
        assert actual.shape == expected.shape, f"{where}: shape {actual.shape}, expected {expected.shape}"
        if expected.dtype == object:
            for index in np.ndindex(expected.shape):
                assert_same(actual[index], expected[index], f"{where}{list(index)}")
        else:
            assert actual.tobytes() == expected.tobytes(), f"{where}: {actual!r}, expected {expected!r}"
    elif isinstance(expected, np.generic):
        assert actual.dtype == expected.dtype, f"{where}: dtype {actual.dtype}, expected {expected.dtype}"
        # By bytes: NaN and NaT do not equal themselves, and 0.0 equals -0.0.
        assert actual.tobytes() == expected.tobytes(), f"{where}: {actual!r}, expected {expected!r}"
    elif isinstance(expected, dict):
        assert list(actual) == list(expected), f"{where}: keys {list(actual)}, expected {list(expected)}"
        for key in expected:
            assert_same(actual[key], expected[key], f"{where}[{key!r}]")
    elif isinstance(expected, (tuple, list)):
        assert len(actual) == len(expected), f"{where}: {len(actual)} parts, expected {len(expected)}"
        for i, (one, other) in enumerate(zip(actual, expected)):
            assert_same(one, other, f"{where}[{i}]")
    elif dataclasses.is_dataclass(expected):
        for field in dataclasses.fields(expected):
            assert_same(getattr(actual, field.name), getattr(expected, field.name), f"{where}.{field.name}")
    else:
        assert actual == expected, f"{where}: {actual!r}, expected {expected!r}"


def until_error(elements: Any) -> tuple[list[Any], BaseException | None]:
    """The elements that come before the first error, and that error; None if there is none."""
    found: list[Any] = []
    try:
        # Not list(): the elements before the error are wanted too.
        for element in elements:
            found.append(element)  # noqa: PERF402
    except BaseException as error:
        return found, error
    return found, None


def plain(elements: list[Any]) -> list[Any]:
    """NumPy values as Python's own, for short comparisons."""
    return [element.tolist() if hasattr(element, "tolist") else element for element in elements]


def saved(dataset: fb.Dataset[Any], elements: int) -> dict[str, Any]:
    """The state after so many elements, as another process would read it."""
    it = iter(dataset)
    for _ in range(elements):
        next(it)
    state: dict[str, Any] = json.loads(json.dumps(it.state_dict()))
    return state


def resumed(dataset: fb.Dataset[Any], state: Any, **how: Any) -> Any:
    """A new iterator with that state loaded."""
    it = iter(dataset)
    it.load_state_dict(state, **how)
    return it


def python(code: str, timeout: float = 300, *arguments: str) -> str:
    """What a fresh interpreter prints; its errors fail the test."""
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def written(path: Path, data: bytes) -> str:
    path.write_bytes(data)
    return str(path)


def outcome(build: Callable[[], Any]) -> tuple[list[Any], BaseException | None]:
    """Elements before the first error, wherever that is raised."""
    try:
        return until_error(build())
    except fb.ForebayError as error:
        return [], error
