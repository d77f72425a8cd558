"""Interleaved datasets to try, and a model of tf.data's algorithm to hold them against."""

import threading

import numpy as np

import forebay as fb

LENGTHS = [
    [],
    [0],
    [0, 0, 0],
    [5],
    [3, 3, 3, 3],
    [1, 9, 2, 0, 7],
    [0, 4, 0, 0, 6, 1],
    [40, 3, 0, 25, 1, 1, 30, 2, 17],
]
CYCLES = [1, 2, 3, 5, 8]
TURNS = [1, 2, 3, 7, 1000]


def expected(lengths: list[int], cycle: int, turn: int) -> list[int]:
    """What tf.data gives: row r of inner dataset i is 1000 * i + r."""
    slots: list[list[int] | None] = [None] * cycle
    rows: list[int] = []
    unread = iter(range(len(lengths)))
    ended, slot, done = False, 0, 0
    while not ended or any(slots):
        inner = slots[slot]
        if inner:
            index, row = inner
            if row < lengths[index]:
                rows.append(1000 * index + row)
                inner[1] += 1
                done += 1
                if done < turn:
                    continue
            else:
                slots[slot] = None
        elif not ended:
            index = next(unread, -1)
            if index >= 0:
                slots[slot] = [index, 0]
            else:
                ended = True
            continue
        slot, done = (slot + 1) % cycle, 0
    return rows


def inner(index: int, length: int) -> fb.Dataset:
    return fb.Dataset.range(1000 * index, 1000 * index + length)


def dataset(lengths, cycle, turn, calls=None, deterministic=None, make=inner, **options) -> fb.Dataset:
    elements = (np.arange(len(lengths)), np.array(lengths, np.int64))
    woven = fb.Dataset.from_tensor_slices(elements).interleave(make, cycle, turn, calls, deterministic)
    return woven.with_options(fb.Options(**options))


def numbers(elements) -> list[int]:
    return [int(element) for element in elements]


def our_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if "interleave" in thread.name]
