"""The demo's training: logistic regression in plain NumPy, fed by Forebay."""

import itertools
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import forebay as fb
from forebay.cli.demo_data import FEATURES, MEAN, SCALE

BATCH = 256
_RATE = np.float32(0.2)
_COMPARED = 100  # Batches that are compared after the resume.

Batch = dict[str, NDArray[Any]]


Arrays = tuple[NDArray[np.float32], NDArray[np.bool_]]


def held_out(rows: int) -> int:
    """How many rows are kept to measure the accuracy on."""
    return min(rows // 50, 10_000)


def split(folder: Path) -> tuple[Arrays, Arrays]:
    """Features and labels to test with, and to train with. The features are mapped, not loaded."""
    x = np.load(folder / "x.npy", mmap_mode="r")
    y = np.load(folder / "y.npy")
    held = held_out(len(y))
    return (x[:held], y[:held]), (x[held:], y[held:])


def standardise(columns: Batch) -> Batch:
    """Features around zero."""
    return {**columns, "x": (columns["x"] - MEAN) / SCALE}


def pipeline(x: NDArray[np.float32], y: NDArray[np.bool_], seed: int) -> fb.Dataset[Batch]:
    """What the demo prints and trains from. The rows are numbered to see whether each of them comes once."""
    number = np.arange(len(y), dtype=np.int32)
    return (
        fb.Dataset.from_tensor_slices({"x": x, "y": y, "row": number})
        .shuffle(seed=seed)  # no buffer size: uniform over everything
        .map(standardise, batched=True)  # on whole columns
        .batch(BATCH)
        .prefetch(fb.AUTOTUNE)
    )


class Model:
    """Logistic regression."""

    def __init__(self) -> None:
        self._weights = np.zeros(FEATURES, np.float32)

    def step(self, batch: Batch) -> float:
        """One step of gradient descent; the loss before it."""
        logits = batch["x"] @ self._weights
        chances = 1 / (1 + np.exp(-logits))
        self._weights -= _RATE / np.float32(len(logits)) * ((chances - batch["y"]) @ batch["x"])
        return float(np.mean(np.logaddexp(0, np.where(batch["y"], -logits, logits))))

    def accuracy(self, x: NDArray[np.float32], y: NDArray[np.bool_]) -> float:
        """The share of labels that it gets right."""
        data = fb.Dataset.from_tensor_slices({"x": x, "y": y}).map(standardise, batched=True).batch(BATCH)
        right = sum(np.count_nonzero((batch["x"] @ self._weights > 0) == batch["y"]) for batch in data)
        return right / len(y)


@dataclass
class Training:
    """A run over `data`, and what has come of it so far.

    Halfway through the last epoch the iterator's state goes to `state_file`. Digests of the batches that come after
    it are kept, to hold a resumed iterator against.
    """

    data: fb.Dataset[Batch]
    rows_per_epoch: int
    state_file: Path
    model: Model = field(default_factory=Model)
    rows: int = 0
    loss: float = 0.0
    seconds: float = 0.0
    waited: float = 0.0
    saved_after: int = 0
    expected: list[str] = field(default_factory=list)
    every_row_once: bool = True

    @property
    def rows_per_second(self) -> float:
        """Over everything so far, the model's own work included."""
        return self.rows / self.seconds if self.seconds else 0.0

    def run_epoch(self, last: bool, advance: Callable[[int], None]) -> None:
        """One pass. `advance` hears of the rows of every batch."""
        middle = len(self.data) // 2
        counts = np.zeros(self.rows_per_epoch, np.uint8)
        before, began = self.seconds, time.perf_counter()
        with iter(self.data) as iterator:
            for number, batch in enumerate(self._batches(iterator)):
                if last and middle <= number < middle + _COMPARED:
                    self.expected.append(_digest(batch))
                loss = self.model.step(batch)
                self.loss += (loss - self.loss) * max(0.02, BATCH / (self.rows + BATCH))
                np.add.at(counts, batch["row"], 1)
                self.rows += len(batch["row"])
                if last and number + 1 == middle:
                    self.state_file.write_text(json.dumps(iterator.state_dict()))
                    self.saved_after = middle
                self.seconds = before + time.perf_counter() - began
                advance(len(batch["row"]))
        self.every_row_once &= bool((counts == 1).all())

    def _batches(self, iterator: Iterator[Batch]) -> Iterator[Batch]:
        while True:
            asked = time.perf_counter()
            batch = next(iterator, None)
            self.waited += time.perf_counter() - asked
            if batch is None:
                return
            yield batch


def resume(data: fb.Dataset[Batch], state_file: Path, count: int) -> tuple[list[str], float]:
    """Digests of the `count` batches after the saved state, and the seconds it took to have the first of them."""
    began = time.perf_counter()
    with iter(data) as iterator:
        iterator.load_state_dict(json.loads(state_file.read_text()))
        digests = [_digest(next(iterator))]
        seconds = time.perf_counter() - began
        digests += [_digest(batch) for batch in itertools.islice(iterator, count - 1)]
    return digests, seconds


def _digest(batch: Batch) -> str:
    digest = blake2b(digest_size=16)
    for name in sorted(batch):
        digest.update(np.ascontiguousarray(batch[name]).data)
    return digest.hexdigest()
