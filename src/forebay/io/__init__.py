"""Files and serialized data: what is called inside ``map``, and what writes files."""

from forebay.io.tfrecord import TFRecordOptions, TFRecordWriter

__all__ = ["TFRecordOptions", "TFRecordWriter"]
