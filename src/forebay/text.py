"""Token streams for language models: what makes training sequences of documents."""

from collections.abc import Callable
from typing import Any

from forebay.dataset import Dataset
from forebay.ops.pack import Pack


def pack(
    length: int,
    *,
    end: int | None = None,
    fit: bool = False,
    segments: bool | None = None,
    pad: int = 0,
    drop_remainder: bool = True,
    window: int = 1024,
    name: str | None = None,
) -> Callable[[Dataset[Any]], Dataset[Any]]:
    """Make sequences of `length` tokens of documents, which are one-dimensional arrays of token ids.

    To be used with ``apply``. Documents are put end to end and cut into sequences, or, with ``fit=True``, kept whole:
    of every `window` documents, the largest is placed first, each into the fullest sequence that still has room for
    it, and what stays empty is filled with `pad`. Documents longer than a sequence are cut in both cases. Resuming
    goes on with the very next sequence.

    Args:
        length: tokens in a sequence.
        end: a token id that is put behind every document.
        fit: keep documents whole.
        segments: give dicts of ``"tokens"``, ``"segment_ids"`` (1 for the first document in a sequence, 2 for the next;
            0 where there is none) and ``"positions"`` (from 0 on in each segment) instead of tokens alone. With
            ``fit=True`` always.
        pad: the token id for empty places, with ``fit=True``.
        drop_remainder: without `fit`, leave out the tokens at the end that do not fill a sequence.
        window: with ``fit=True``, documents to choose from; these are in memory.
        name: what to call this step in errors and plans.

    >>> documents = Dataset.from_tensor_slices([[1, 2], [3, 4], [5, 6]])
    >>> list(documents.apply(pack(4, end=0)))
    [array([1, 2, 0, 3]), array([4, 0, 5, 6])]
    >>> list(documents.apply(pack(5, fit=True)))[0]
    {'tokens': array([1, 2, 3, 4, 0]), 'segment_ids': array([1, 1, 2, 2, 0], dtype=int32),
     'positions': array([0, 1, 0, 1, 0], dtype=int32)}
    """
    chosen = fit if segments is None else segments

    def apply(dataset: Dataset[Any]) -> Dataset[Any]:
        return dataset._then(
            Pack,
            name,
            length=length,
            end=end,
            pad=pad,
            fit=fit,
            segments=chosen,
            drop_remainder=drop_remainder,
            window=window,
        )

    return apply
