"""From ``iter()`` to the first element, and whether a second epoch has to start anything again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from bench.memory import descendants
from bench.spec import MILLISECONDS, Contender, Empty, Sample, Task, ValueBelow, Workload
from bench.tokenizer import texts, tokenize

LETTERS = 90
THREADS_LIMIT_MS = 20
PROCESSES_LIMIT_MS = 1500

Build = Callable[[list[str]], Callable[[], Iterator[Any]]]


def measure(task: Task, build: Build) -> Sample:
    """Importing the library and building the pipeline are over when the clock starts; nothing else is."""
    open_epoch = build(texts(task.rows, LETTERS))
    firsts, processes = [], []
    for _ in range(2):
        started = time.perf_counter()
        iterator = open_epoch()
        next(iterator)
        firsts.append((time.perf_counter() - started) * 1000)
        for _element in iterator:
            pass
        processes.append(set(descendants(os.getpid())))
        del iterator
    return {
        "value": firsts[0],
        "second_epoch_ms": firsts[1],
        "processes": len(processes[0]),
        "new_processes": [str(pid) for pid in sorted(processes[1] - processes[0])],
    }


def forebay(data: list[str], executor: str) -> Callable[[], Iterator[Any]]:
    import forebay as fb

    # A number, not AUTOTUNE: a worker that the tuner adds later would be new, but no start of the second epoch.
    dataset = fb.Dataset.from_tensor_slices(data).map(tokenize, num_parallel_calls=2, executor=executor)
    return lambda: iter(dataset)


def torch_loader(data: list[str]) -> Callable[[], Iterator[Any]]:
    from torch.utils.data import DataLoader

    from bench.workloads.w7_tokenize import Texts

    loader = DataLoader(Texts(data), batch_size=None, num_workers=2, persistent_workers=True)
    return lambda: iter(loader)


def tf_data(data: list[str]) -> Callable[[], Iterator[Any]]:
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(data)
    dataset = dataset.map(
        lambda text: tf.numpy_function(lambda each: tokenize(each.decode()), [text], tf.int32),
        num_parallel_calls=2,
    )
    return lambda: iter(dataset.as_numpy_iterator())


def contender(name: str, library: str, build: Build, note: str) -> Contender:
    return Contender(name, library, partial(measure, build=build), note=note, reference=library != "forebay")


WORKLOADS = (
    Workload(
        name="startup",
        title="iter() to the first element of texts.map(a tokenizer of about 100 µs, 2 workers)",
        unit=MILLISECONDS,
        rows=4_000,
        quick_rows=1_000,
        parameters={"letters": LETTERS},
        ratios_of=(),
        contenders=(
            contender("forebay threads", "forebay", partial(forebay, executor="thread"), 'executor="thread"'),
            contender("forebay processes", "forebay", partial(forebay, executor="process"), 'executor="process"'),
            contender("forebay auto", "forebay", partial(forebay, executor="auto"), 'executor="auto"'),
            contender("torch 2 workers", "torch", torch_loader, "persistent workers, forked"),
            contender("tf.data", "tensorflow", tf_data, "numpy_function on threads"),
        ),
        targets=(
            ValueBelow("forebay threads", THREADS_LIMIT_MS, "ms", "first element"),
            ValueBelow("forebay processes", PROCESSES_LIMIT_MS, "ms", "first element"),
            Empty("forebay processes", "new_processes", "processes started by a second epoch"),
        ),
    ),
)
