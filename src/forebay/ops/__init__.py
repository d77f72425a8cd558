"""The operators; one file each, with the node (what) and the operator (how) side by side."""

from typing import TYPE_CHECKING

from forebay.lazy import on_first_use

__all__ = [
    "Batch",
    "Concatenate",
    "Enumerate",
    "Filter",
    "FlatMap",
    "Interleave",
    "Map",
    "Prefetch",
    "Repeat",
    "Shard",
    "Shuffle",
    "Skip",
    "SliceRows",
    "Take",
    "TakeWhile",
    "Unbatch",
    "WithOptions",
    "Zip",
]

if TYPE_CHECKING:
    from forebay.ops.batch import Batch
    from forebay.ops.concatenate import Concatenate
    from forebay.ops.enumerate import Enumerate
    from forebay.ops.filter import Filter
    from forebay.ops.flat_map import FlatMap
    from forebay.ops.interleave import Interleave
    from forebay.ops.map import Map
    from forebay.ops.options import WithOptions
    from forebay.ops.prefetch import Prefetch
    from forebay.ops.repeat import Repeat
    from forebay.ops.shard import Shard
    from forebay.ops.shuffle import Shuffle
    from forebay.ops.skip import Skip
    from forebay.ops.slice_rows import SliceRows
    from forebay.ops.take import Take
    from forebay.ops.take_while import TakeWhile
    from forebay.ops.unbatch import Unbatch
    from forebay.ops.zip import Zip
else:
    __getattr__ = on_first_use(
        __name__,
        {
            "batch": "Batch",
            "concatenate": "Concatenate",
            "enumerate": "Enumerate",
            "filter": "Filter",
            "flat_map": "FlatMap",
            "interleave": "Interleave",
            "map": "Map",
            "options": "WithOptions",
            "prefetch": "Prefetch",
            "repeat": "Repeat",
            "shard": "Shard",
            "shuffle": "Shuffle",
            "skip": "Skip",
            "slice_rows": "SliceRows",
            "take": "Take",
            "take_while": "TakeWhile",
            "unbatch": "Unbatch",
            "zip": "Zip",
        },
    )
