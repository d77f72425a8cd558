"""Files and serialized data: what is called inside ``map``, and what writes files."""

from forebay.io.decode import decode_image, decode_jpeg, decode_png
from forebay.io.example import ExampleParser, parse_example, parse_single_example
from forebay.io.features import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    RaggedTensor,
    SparseTensor,
    VarLenFeature,
)
from forebay.io.read_file import read_file
from forebay.io.sequence_example import parse_sequence_example, parse_single_sequence_example
from forebay.io.serialize import serialize_example
from forebay.io.tfrecord import TFRecordOptions, TFRecordWriter

__all__ = [
    "ExampleParser",
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "RaggedTensor",
    "SparseTensor",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "read_file",
    "serialize_example",
]
