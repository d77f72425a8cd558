"""A tokenizer as people write them in Python: words, then the longest known pieces of each, then ids of one length."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import Any

import numpy as np

from bench.pipeline import WrongData

LENGTH = 32
TEXTS = 1_000
"""So many different texts, over and over: few enough to check every row of an epoch against what it should be."""

_WORDS = "the ing tion er re an in on at en es or te ed it is al ar st nd to nt ha ou ea ng as hi le ve me"
VOCABULARY = {piece: 100 + at for at, piece in enumerate([*_WORDS.split(), *"abcdefghijklmnopqrstuvwxyz"])}
_LONGEST = max(map(len, VOCABULARY))
_START, _END, _UNKNOWN = 1, 2, 3


def tokenize(text: str) -> np.ndarray[Any, Any]:
    """The ids of the text's pieces, cut and filled up to one length."""
    ids = [_START]
    for word in text.lower().split():
        at = 0
        while at < len(word):
            for end in range(min(len(word), at + _LONGEST), at, -1):
                found = VOCABULARY.get(word[at:end])
                if found is not None:
                    ids.append(found)
                    at = end
                    break
            else:
                ids.append(_UNKNOWN)
                at += 1
    ids = ids[: LENGTH - 1]
    ids.append(_END)
    return np.array(ids + [0] * (LENGTH - len(ids)), dtype=np.int32)


def texts(rows: int, letters: int) -> list[str]:
    """Short sentences of so many letters, from a fixed seed."""
    chance = random.Random(letters)
    different = []
    for _ in range(min(rows, TEXTS)):
        words, left = [], letters
        while left > 0:
            size = min(left, chance.randint(2, 9))
            words.append("".join(chance.choices("etaoinshrdlcumwfgypbvk", k=size)))
            left -= size
        different.append(" ".join(words))
    return [different[row % len(different)] for row in range(rows)]


def tokenized(batch: int, data: list[str], rows: int, batches: Iterable[Any]) -> None:
    """Every row holds its own text's ids, in order, in batches of that size."""
    expected = np.stack([tokenize(text) for text in data[:TEXTS]])
    at = 0
    for values in map(np.asarray, batches):
        size = min(batch, rows - at)
        if not np.array_equal(values, expected[np.arange(at, at + size) % len(expected)]):
            raise WrongData(f"the batch at row {at:,} does not hold the ids of its texts")
        at += size
    if at != rows:
        raise WrongData(f"{at:,} rows, expected {rows:,}")
