"""W3c: the Examples of W3 in GZIP files."""

from __future__ import annotations

from functools import partial

from bench.pipeline import contender
from bench.spec import TimesFaster, Workload
from bench.tfrecords import examples, parsed
from bench.workloads.w3 import SHARED, forebay_single, tf_batch, tf_single

run = partial(contender, data=partial(examples, compression="GZIP"), check=parsed, leaf="id")

WORKLOADS = (
    Workload(
        name="w3c",
        title="GZIP files.interleave(TFRecordDataset).map(parse_single_example).batch(256)",
        contenders=(
            run("forebay", "forebay", partial(forebay_single, threads=2, compression="GZIP"), note="two threads"),
            run("forebay inline", "forebay", partial(forebay_single, compression="GZIP")),
            run("tf.data", "tensorflow", partial(tf_single, compression="GZIP"), note="AUTOTUNE everywhere, prefetch"),
            run(
                "tf.data batch",
                "tensorflow",
                partial(tf_batch, interleave=True, compression="GZIP"),
                note="interleave, batch, map(parse_example)",
            ),
        ),
        targets=(TimesFaster("forebay", 1.5, "tensorflow", usual="tf.data"),),
        **SHARED,
    ),
)
