"""Measures whole epochs of a pipeline: every throughput contender goes through the same loop."""

from __future__ import annotations

import gc
import importlib
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from bench.busy import Busy
from bench.memory import PeakMemory
from bench.spec import Contender, Sample, Task

Open = Callable[[], Iterable[Any]]
"""Starts one epoch."""

AT_LEAST_SECONDS = 1.0
"""An epoch of milliseconds fits between two turns of whatever else the machine does, one of seconds does not.
Fast contenders therefore run several epochs, so that all of them meet the same disturbance."""


class WrongData(Exception):
    """A contender yielded something else than the workload asks for; its speed means nothing."""


def contender(
    name: str,
    library: str,
    build: Callable[[Any, int], Open],
    *,
    data: Callable[[int], Any] = lambda rows: None,
    check: Callable[[Any, int, Iterable[Any]], None],
    leaf: int | str | None = None,
    note: str = "",
    rows: int | None = None,
    reference: bool = False,
    workers: bool = False,
    first_apart: bool = False,
) -> Contender:
    """A contender that iterates whole epochs.

    ``data(rows)`` makes the user's arrays; ``build(data, rows)`` makes the pipeline and returns what starts
    an epoch. Neither is timed. Memory is counted from before ``build``, because some libraries copy the
    arrays there. ``first_apart`` keeps the first epoch, which may have to start workers, out of the value and
    reports it beside it. ``leaf`` picks, from a batch with several columns, the one whose length is counted.
    """

    def measure(task: Task) -> Sample:
        importlib.import_module(library)
        source = data(task.rows)
        gc.collect()
        with PeakMemory(workers) as memory:
            started = time.perf_counter()
            open_epoch = build(source, task.rows)
            build_seconds = time.perf_counter() - started
            first = {"first_value": task.rows / _epoch(open_epoch, leaf, name, task.rows)[0]} if first_apart else {}
            with Busy() as busy:
                epochs, closings = _epochs(open_epoch, leaf, name, task.rows)
        if task.verify:
            check(source, task.rows, open_epoch())
        return {
            "value": task.rows * len(epochs) / sum(epochs),
            **first,
            "epoch_seconds": epochs,
            "closing_seconds": closings,
            "build_seconds": build_seconds,
            "cpu_seconds": busy.own,
            "cpu_us_per_row": busy.own / (task.rows * len(epochs)) * 1e6,
            "others_share": busy.others,
            "growth_bytes": memory.growth,
            "before_bytes": memory.before,
            "memory_method": memory.method,
            "verified": task.verify,
        }

    return Contender(name, library, measure, note=note, rows=rows, reference=reference)


def _epochs(open_epoch: Open, leaf: int | str | None, name: str, rows: int) -> tuple[list[float], list[float]]:
    """What ``_epoch`` says of each epoch."""
    epochs: list[float] = []
    closings: list[float] = []
    while sum(epochs) < AT_LEAST_SECONDS:
        seconds, closing = _epoch(open_epoch, leaf, name, rows)
        epochs.append(seconds)
        closings.append(closing)
    return epochs, closings


def _epoch(open_epoch: Open, leaf: int | str | None, name: str, rows: int) -> tuple[float, float]:
    """Seconds of one whole epoch, its opening included, and seconds it then took to let go of the iterator.

    The second is kept apart because it is no part of the work: an autotuned tf.data iterator, once exhausted,
    blocks when dropped until its tuner's current period ends, which doubles from 10 ms to tens of seconds.
    """
    started = time.perf_counter()
    iterator = iter(open_epoch())
    count = _count(iterator, leaf)
    ended = time.perf_counter()
    del iterator
    closing = time.perf_counter() - ended
    if count != rows:
        raise WrongData(f"{name} yielded {count:,} rows, expected {rows:,}")
    return ended - started, closing


def _count(iterator: Iterator[Any], leaf: int | str | None) -> int:
    count = 0
    if leaf is None:
        for batch in iterator:
            count += len(batch)
    else:
        for batch in iterator:
            count += len(batch[leaf])
    return count
