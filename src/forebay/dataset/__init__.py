"""The fluent face of Forebay: sources make datasets, and every method of one makes another."""

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from forebay import ops, sources
from forebay.block import flatten
from forebay.block.spec import as_dtype
from forebay.dataset.elsewhere import OtherDataset
from forebay.dataset.face import Hinting, StaticOrMethod, missing, presented
from forebay.dataset.text_sources import TextSources
from forebay.errors import PlanError
from forebay.plan import caller

AUTOTUNE = -1
INFINITE_CARDINALITY = -1
UNKNOWN_CARDINALITY = -2

T_co = TypeVar("T_co", covariant=True)
U = TypeVar("U")


@presented
class Dataset(TextSources, OtherDataset[T_co], metaclass=Hinting):
    """A lazy, immutable description of a stream of elements.

    Elements are NumPy arrays and scalars, bytes, str or other objects, alone or nested in dicts, tuples, named
    tuples and dataclasses. Nothing runs until the dataset is iterated over, and every iteration starts anew.

    >>> ds = Dataset.range(6).map(lambda x: x * 10).batch(4)
    >>> for batch in ds:
    ...     print(batch)
    [ 0 10 20 30]
    [40 50]

    Functions given to a dataset should depend on nothing but their arguments: results may be computed ahead,
    again after a resume, or in another order than they are handed out in.
    """

    if not TYPE_CHECKING:
        # To a type checker, every name would be there.
        def __getattr__(self, name: str) -> Any:
            raise missing(name, f"{type(self).__name__!r} object")

    def __getitem__(self, index: object) -> NoReturn:
        raise TypeError(
            "a Dataset is iterated over, not indexed: ds.skip(n).take(1) has one element, and for torch's DataLoader "
            'README.md, "With PyTorch, JAX, Keras", has a few lines'
        )

    @staticmethod
    def range(*args: int, output_type: DTypeLike = np.int64, name: str | None = None) -> "Dataset[Any]":
        """Numbers as Python's ``range`` gives them: ``range(stop)``, ``(start, stop)`` or ``(start, stop, step)``.

        >>> list(Dataset.range(1, 10, 4, output_type=np.int32))
        [np.int32(1), np.int32(5), np.int32(9)]
        """
        if not 1 <= len(args) <= 3:
            raise PlanError(f"range() takes one to three numbers, got {len(args)}")
        start, stop, step = (0, args[0], 1) if len(args) == 1 else (*args, 1)[:3]
        return Dataset(
            sources.Range(
                start=start,
                stop=stop,
                step=step,
                output_type=as_dtype("range", "output_type", output_type),
                label=name,
                where=caller(),
            )
        )

    @staticmethod
    def from_tensors(tensors: U, name: str | None = None) -> "Dataset[U]":
        """A dataset of one element.

        >>> list(Dataset.from_tensors({"x": [1, 2, 3]}))
        [{'x': array([1, 2, 3])}]
        """
        return Dataset(sources.single_element(tensors, name, caller()))

    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> "Dataset[Any]":
        """A dataset of the rows of arrays: element i holds row i of each.

        Arrays are not copied, and memory-mapped ones are not loaded: their rows are read from the file, whatever their
        dtype, byte order and strides are. Rows of a file that is stored column by column take a read for each column
        of a block. A map with ``mode="c"``, or of a file that was removed or replaced, is read through the map itself:
        pages stay resident, and a file that becomes shorter at that moment ends the process. A pandas DataFrame gives
        dicts of its columns.
        Other objects that look like arrays, such as an open h5py dataset, are loaded whole: for those that do not
        fit into memory, ``range(len(x)).map(lambda i: x[i])`` reads row by row.

        >>> list(Dataset.from_tensor_slices(([1, 2], ["a", "b"])))
        [(np.int64(1), 'a'), (np.int64(2), 'b')]
        """
        return Dataset(sources.slices_of(tensors, name, caller()))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: tuple[Any, ...] | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """Elements from a function that returns an iterator; it is called anew for every iteration.

        To resume, the function is called again and elements are skipped, unless its iterator has
        ``state_dict`` and ``load_state_dict``: then its own state is saved and loaded.

        Args:
            generator: returns an iterable; called with `args`.
            output_types: the older form of `output_signature`, together with `output_shapes`; tf.data's will do.
            output_shapes: see `output_types`.
            args: arguments for `generator`.
            output_signature: a structure of ``TensorSpec`` that elements are cast to and checked against. Those of
                tf.data will do.
                Without it the first element sets structure and dtypes.
            name: what to call this step in errors and plans.

        >>> list(Dataset.from_generator(lambda: (i * i for i in range(4))))
        [np.int64(0), np.int64(1), np.int64(4), np.int64(9)]
        """
        if output_types is not None:
            if output_signature is not None:
                raise PlanError("from_generator(): give output_signature or output_types, not both")
            output_signature = sources.signature_from_types(output_types, output_shapes)
        return Dataset(
            sources.Generator(
                generator=generator,
                args=args if args is not None else (),
                output_signature=output_signature,
                label=name,
                where=caller(),
            )
        )

    @staticmethod
    def random(
        seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> "Dataset[np.int64]":
        """Random whole numbers from 0 to 2**32 - 1, without end.

        Args:
            seed: fixes the numbers for ever.
            rerandomize_each_iteration: other numbers in every iteration, the same ones for the same iteration.
            name: what to call this step in errors and plans.

        >>> list(Dataset.random(seed=1).take(2))
        [np.int64(3884011773), np.int64(3150830517)]
        """
        again = bool(rerandomize_each_iteration) if rerandomize_each_iteration is None else rerandomize_each_iteration
        return Dataset(sources.Random(seed=seed, rerandomize_each_iteration=again, label=name, where=caller()))

    @staticmethod
    def counter(start: int = 0, step: int = 1, dtype: DTypeLike = np.int64, name: str | None = None) -> "Dataset[Any]":
        """Numbers from `start` in steps of `step`, without end.

        >>> list(Dataset.counter(start=5, step=2).take(3))
        [np.int64(5), np.int64(7), np.int64(9)]
        """
        return Dataset(
            sources.Counter(
                start=start, step=step, dtype=as_dtype("counter", "dtype", dtype), label=name, where=caller()
            )
        )

    @staticmethod
    def from_images(
        folder: str | os.PathLike[str],
        labels: str | Callable[[str], Any] | None = "folders",
        *,
        size: tuple[int, int] | None = None,
        channels: int = 3,
        method: str = "bilinear",
        antialias: bool = False,
        exact: bool = False,
        dtype: DTypeLike = np.uint8,
        class_names: Sequence[str] | None = None,
        as_dict: bool = False,
        shuffle: bool = False,
        seed: int | None = None,
        num_parallel_calls: int | None = AUTOTUNE,
        on_error: str = "raise",
        max_errors: int | None = 100,
        max_pixels: int | None = None,
        name: str | None = None,
    ) -> "Dataset[Any]":
        """The images anywhere below a folder, with labels: JPEG, PNG, GIF (the first frame), BMP and WebP.

        Images are read and decoded where they come out. ``shuffle()``, ``skip`` and ``shard`` move paths, not pixels.
        Needs ``forebay[image]``.

        Args:
            folder: a path, or a URL that fsspec knows.
            labels: ``"folders"`` gives pairs of an image and the number of the folder that it is in, in the order of
                the folders' names. A function gets the path and returns the label. With None there are images alone.
            size: the height and width that all images are resized to; without it, they keep their own.
            channels: 1 for grey, 3 for colours, 4 for colours and opacity.
            method: as in ``fb.image.resize``.
            antialias: as in ``fb.image.resize``.
            exact: decode large JPEG images whole before they are resized; see ``fb.image.decode_and_resize``.
            dtype: of images that are resized: uint8, or float32 for values that are not rounded.
            class_names: the folders that count, in the order of their numbers; by default all, in alphabetical order.
            as_dict: dicts of ``"image"`` and ``"label"`` instead of pairs.
            shuffle: put paths into a random order first. ``shuffle()`` afterwards does the same, except with
                ``on_error="skip"``, where it would have to keep decoded images.
            seed: that of `shuffle`.
            num_parallel_calls: decode so many images at the same time.
            on_error: ``"skip"`` leaves out files that are missing or broken, and logs them (logger "forebay").
                ``"raise"`` raises FileError.
            max_errors: so many files are left out; the next one is raised. None for any number.
            max_pixels: larger images are refused before anything is allocated for them; 200 million by default.
            name: what to call this step in errors and plans.

        >>> import tempfile, pathlib, simplejpeg
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> for animal in ("cat", "dog"):
        ...     _ = (folder / animal).mkdir()
        ...     _ = (folder / animal / "1.jpg").write_bytes(simplejpeg.encode_jpeg(np.zeros((30, 40, 3), np.uint8)))
        >>> [(image.shape, label) for image, label in Dataset.from_images(folder, size=(8, 8))]
        [((8, 8, 3), np.int64(0)), ((8, 8, 3), np.int64(1))]
        """
        # Few programs read images, and all of them import Forebay.
        from forebay.dataset.images import image_dataset

        return image_dataset(
            folder,
            labels,
            size=size,
            channels=channels,
            method=method,
            antialias=antialias,
            exact=exact,
            dtype=dtype,
            class_names=class_names,
            as_dict=as_dict,
            shuffle=shuffle,
            seed=seed,
            num_parallel_calls=num_parallel_calls,
            on_error=on_error,
            max_errors=max_errors,
            max_pixels=max_pixels,
            name=name,
        )

    @StaticOrMethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> "Dataset[Any]":
        """Elements of several datasets side by side, as long as all have one. Any structure of datasets will do.

        ``a.zip(b)`` is ``Dataset.zip(a, b)``.

        >>> a, b = Dataset.range(3), Dataset.from_tensor_slices(["x", "y"])
        >>> list(Dataset.zip(a, b))
        [(np.int64(0), 'x'), (np.int64(1), 'y')]
        >>> list(Dataset.zip({"n": a, "s": b}).take(1))
        [{'n': np.int64(0), 's': 'x'}]
        """
        if bool(args) == (datasets is not None):
            raise PlanError("zip(): give datasets, either one by one or in one structure")
        given = datasets if datasets is not None else args[0] if len(args) == 1 else args
        leaves, shape = flatten(given)
        for leaf in leaves:
            if not isinstance(leaf, Dataset):
                hint = "; put datasets into a tuple or a dict" if isinstance(leaf, list) else ""
                raise PlanError(f"zip(): {leaf!r} is not a Dataset{hint}")
        if not leaves:
            raise PlanError("zip(): there are no datasets")
        return Dataset(ops.Zip(inputs=tuple(leaf.plan for leaf in leaves), shape=shape, label=name, where=caller()))
