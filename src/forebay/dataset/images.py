"""Folders of images."""

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np
from numpy.typing import DTypeLike

from forebay.dataset import Dataset
from forebay.errors import PlanError
from forebay.image.decode_and_resize import DecodeAndResize
from forebay.io.decode import image_library
from forebay.io.image_header import MAX_PIXELS
from forebay.io.jpeg import jpeg_library
from forebay.ops.map import Map
from forebay.plan import caller
from forebay.plan.check import flag
from forebay.plan.skips import check_on_error
from forebay.sources import slices_of
from forebay.sources.images import LoadImage, find_images

Labels = str | Callable[[str], Any] | None


def image_dataset(
    folder: str | os.PathLike[str],
    labels: Labels,
    *,
    size: tuple[int, int] | None,
    channels: int,
    method: str,
    antialias: bool,
    exact: bool,
    dtype: DTypeLike,
    class_names: Sequence[str] | None,
    as_dict: bool,
    shuffle: bool,
    seed: int | None,
    num_parallel_calls: int | None,
    on_error: str,
    max_errors: int | None,
    max_pixels: int | None,
    name: str | None,
) -> Dataset[Any]:
    """``Dataset.from_images``."""
    for argument, value in (("as_dict", as_dict), ("shuffle", shuffle)):
        flag("from_images", argument, value)
    check_on_error("from_images", on_error)
    if channels not in (1, 3, 4):
        raise PlanError(f"from_images(channels={channels!r}): channels must be 1, 3 or 4")
    # Now, while the line that asks for them can still be named.
    jpeg_library("from_images")
    image_library("from_images")
    most = MAX_PIXELS if max_pixels is None else max_pixels
    decode = None
    if size is not None:
        decode = DecodeAndResize(
            size, method, channels=channels, antialias=antialias, exact=exact, dtype=dtype, max_pixels=most
        )
    elif np.dtype(dtype) != np.uint8:
        raise PlanError("from_images(dtype=...): images that keep their size are uint8; give size, or cast with map()")
    if not isinstance(folder, (str, os.PathLike)):
        raise PlanError(f"from_images({folder!r}): the folder must be a path")
    root, names = find_images(os.fspath(folder))
    names, values = _labelled(root, names, labels, class_names)
    load = LoadImage(root, channels, most, decode)
    paths = np.array(names, object)
    tensors = paths if values is None else {"image": paths, "label": values} if as_dict else (paths, values)
    if values is None and as_dict:
        tensors = {"image": paths}
    dataset: Dataset[Any] = Dataset(slices_of(tensors, None, caller()))
    if shuffle:
        dataset = dataset.shuffle(seed=seed)
    elif seed is not None:
        raise PlanError(f"from_images(seed={seed}): there is nothing to draw without shuffle=True")
    # Reading and decoding release the interpreter's lock, so that nothing has to be measured first.
    workers: dict[str, Any] = {"num_parallel_calls": num_parallel_calls, "name": name}
    if num_parallel_calls is not None:
        workers["executor"] = "thread"
    images = dataset.map(load, on_error=on_error, max_errors=max_errors, **workers)
    return Dataset(replace(cast(Map, images.plan), called="from_images"))


def _labelled(
    root: str, names: list[str], labels: Labels, class_names: Sequence[str] | None
) -> tuple[list[str], Any | None]:
    """The images that count, in their order, and what stands beside each of them."""
    if class_names is not None and labels != "folders":
        raise PlanError("from_images(class_names=...): names of folders mean something with labels='folders' only")
    if labels is None:
        return names, None
    if callable(labels):
        return names, [labels(f"{root}/{name}") for name in names]
    if labels != "folders":
        raise PlanError(f"from_images(labels={labels!r}): labels must be 'folders', None or a function of the path")
    folders = [name.partition("/")[0] if "/" in name else None for name in names]
    present = sorted({each for each in folders if each is not None})
    if not present:
        raise PlanError(f"from_images({root!r}): there are no folders to label images by; give labels=None")
    if class_names is not None:
        missing = sorted(set(class_names) - set(present))
        if missing or len(set(class_names)) < len(class_names):
            raise PlanError(
                f"from_images(class_names={list(class_names)!r}): "
                + (f"no images in {missing[0]!r}" if missing else "a name is given twice")
            )
        present = list(class_names)
    number = {each: label for label, each in enumerate(present)}
    chosen = sorted((number[f], name) for f, name in zip(folders, names) if f is not None and f in number)
    return [name for _, name in chosen], np.array([label for label, _ in chosen], np.int64)
