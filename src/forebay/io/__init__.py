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
from forebay.io.raw import decode_compressed, decode_raw
from forebay.io.read_file import read_file
from forebay.io.sequence_example import parse_sequence_example, parse_single_sequence_example
from forebay.io.serialize import serialize_example
from forebay.io.tfrecord import TFRecordOptions, TFRecordWriter
from forebay.remote_run import remote_options

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
    "decode_compressed",
    "decode_image",
    "decode_jpeg",
    "decode_png",
    "decode_raw",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "read_file",
    "remote_options",
    "serialize_example",
]
