"""What flows through a pipeline: blocks of rows, stored column by column."""

from forebay.block.block import Block, concat_blocks
from forebay.block.build import (
    array_of,
    column_from_array,
    column_from_leaves,
    column_from_rows,
    fold,
    unfold,
    with_dtype,
)
from forebay.block.column import Column, Indices, MissingError, RowError
from forebay.block.cursor import START, Cursor
from forebay.block.normalize import Normalizer
from forebay.block.rows import RowBuilder
from forebay.block.spec import TensorSpec
from forebay.block.structure import LEAF, Structure, flatten
from forebay.block.uniform import Uniform

__all__ = [
    "LEAF",
    "START",
    "Block",
    "Column",
    "Cursor",
    "Indices",
    "MissingError",
    "Normalizer",
    "RowBuilder",
    "RowError",
    "Structure",
    "TensorSpec",
    "Uniform",
    "array_of",
    "column_from_array",
    "column_from_leaves",
    "column_from_rows",
    "concat_blocks",
    "flatten",
    "fold",
    "unfold",
    "with_dtype",
]
