"""The two libraries behind one face, so that one line of Python builds the same pipeline in both.

A case is a function of a `Side`: ``lambda d: d.range(10).map(lambda x: x * 2).batch(3)``. What the two name
differently is an attribute here; everything else is the libraries' own.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Side:
    """One library: its Dataset's constructors under short names, and how to look at what it produces."""

    name: str
    Dataset: Any
    AUTOTUNE: int
    Options: Any
    TensorSpec: Any
    TFRecordDataset: Any
    io: Any
    string: Any  # the dtype of byte strings in a TensorSpec
    f: Any  # what functions inside a pipeline compute with: tf or NumPy, the same few names
    errors: tuple[type[Exception], ...]  # that count as a refusal
    own_errors: tuple[type[Exception], ...]  # that the library raises on purpose
    call: Callable[[Callable[["Side"], Any]], Any]
    numpy: Callable[[Any], Any]
    describe: Callable[[Any], tuple[str, Any]]
    tuned: Callable[[Any], Any]

    def __getattr__(self, name: str) -> Any:
        return getattr(self.Dataset, _SHORT.get(name, name))

    def spec(self, shape: Any = (), dtype: Any = np.int64) -> Any:
        """A TensorSpec, for output_signature."""
        return self.TensorSpec(shape, dtype)

    def list(self, dataset: Any) -> list[Any]:
        """Every element of a finite dataset."""
        return list(dataset.as_numpy_iterator())

    def trace(self, dataset: Any, steps: int = 7) -> tuple[Any, ...]:
        """What one iterator answers when it is asked again and again: elements, "error" and "end"."""
        iterator, seen = self.tuned(dataset).as_numpy_iterator(), []
        for _ in range(steps):
            try:
                seen.append(next(iterator).tolist())
            except StopIteration:
                seen.append("end")
            except self.errors:
                seen.append("error")
        return tuple(seen)


_SHORT = {"slices": "from_tensor_slices", "tensors": "from_tensors", "generator": "from_generator"}


@cache
def tensorflow() -> ModuleType:
    """TensorFlow, imported on first use and kept quiet: collecting these tests must not cost its import."""
    with warnings.catch_warnings():
        # What its own imports deprecate is no news about Forebay.
        warnings.simplefilter("ignore")
        import tensorflow as tf

    tf.get_logger().setLevel("ERROR")
    tf.autograph.set_verbosity(0)
    return tf


@cache
def oracle() -> Side:
    """The real tf.data."""
    tf = tensorflow()

    def call(build: Callable[[Side], Any]) -> Any:
        # AutoGraph rewrites functions from their source: slow, and lambdas on one line look alike to it.
        return tf.autograph.experimental.do_not_convert(build)(side)

    def numpy(value: Any) -> Any:
        return tf.nest.map_structure(lambda x: x.numpy() if isinstance(x, tf.Tensor) else x, value)

    def describe(spec: Any) -> tuple[str, Any]:
        if not isinstance(spec, tf.TensorSpec):
            return "object", ()  # NoneTensorSpec; Forebay keeps None as an object
        dtype = "bytes" if spec.dtype == tf.string else spec.dtype.name
        return dtype, None if spec.shape.rank is None else tuple(spec.shape.as_list())

    side = Side(
        name="tf.data",
        Dataset=tf.data.Dataset,
        AUTOTUNE=tf.data.AUTOTUNE,
        Options=tf.data.Options,
        TensorSpec=tf.TensorSpec,
        TFRecordDataset=tf.data.TFRecordDataset,
        io=tf.io,
        string=tf.string,
        f=SimpleNamespace(
            stack=tf.stack,
            concat=lambda parts: tf.concat(parts, 0),
            sum=tf.reduce_sum,
            fill=lambda count, value: tf.fill([count], value),
            arange=lambda count: tf.range(count, dtype=tf.int64),
            is_number=lambda x: isinstance(x, tf.Tensor) and (x.dtype.is_floating or x.dtype.is_integer),
            check=lambda x, good: tf.gather([x], tf.where(good, 0, 9)),
        ),
        # tf.data refuses bad arguments with whatever exception its binding layer happens to raise.
        errors=(tf.errors.OpError, TypeError, ValueError, AttributeError),
        own_errors=(Exception,),
        call=call,
        numpy=numpy,
        describe=describe,
        tuned=lambda dataset: dataset,
    )
    return side


@cache
def forebay(optimize: bool = True, block_bytes: int = 1 << 20) -> Side:
    """Forebay, run as its options say: none of them may change what comes out."""
    import forebay as fb

    options = fb.Options(optimize=optimize, block_bytes=block_bytes)
    names = {"S": "bytes", "U": "str", "O": "object"}

    def describe(spec: Any) -> tuple[str, Any]:
        return names.get(spec.dtype.char, spec.dtype.name), spec.shape

    side = Side(
        name=f"forebay(optimize={optimize}, block_bytes={block_bytes})",
        Dataset=fb.Dataset,
        AUTOTUNE=fb.AUTOTUNE,
        Options=fb.Options,
        TensorSpec=fb.TensorSpec,
        TFRecordDataset=fb.TFRecordDataset,
        io=fb.io,
        string=bytes,
        f=SimpleNamespace(
            stack=np.stack,
            concat=np.concatenate,
            sum=np.sum,
            fill=lambda count, value: np.full(count, value),
            arange=np.arange,
            is_number=lambda x: isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "iuf",
            check=lambda x, good: x if good else _fail(),
        ),
        errors=(fb.errors.ForebayError, TypeError),
        own_errors=(fb.errors.ForebayError,),
        call=lambda build: build(side),
        numpy=lambda value: value,
        describe=describe,
        tuned=lambda dataset: dataset.with_options(options),
    )
    return side


def every_forebay() -> tuple[Side, ...]:
    """As users get it, with the plan run as written, and with one row per block."""
    return forebay(), forebay(optimize=False), forebay(block_bytes=1)


def _fail() -> Any:
    raise ArithmeticError("a function of the user's raised")
