"""The workloads, in the order in which they run. Adding one is one file here and one entry below."""

from __future__ import annotations

from bench.spec import Workload
from bench.workloads import (
    csv_lines,
    import_time,
    load,
    memory_scale,
    parquet,
    prefetch,
    remote,
    resume,
    startup,
    tars,
    tuner,
    w0_map,
    w1_shuffle,
    w2_slices,
    w3,
    w3b,
    w3c,
    w4_images,
    w5_cache,
    w6_out_of_core,
    w6b_disk_cache,
    w7_tokenize,
    w7b_decompress,
)

WORKLOADS: tuple[Workload, ...] = (
    *w0_map.WORKLOADS,
    *w1_shuffle.WORKLOADS,
    *w2_slices.WORKLOADS,
    *w3.WORKLOADS,
    *w3b.WORKLOADS,
    *w3c.WORKLOADS,
    *w4_images.WORKLOADS,
    *w5_cache.WORKLOADS,
    *w6_out_of_core.WORKLOADS,
    *w6b_disk_cache.WORKLOADS,
    *memory_scale.WORKLOADS,
    *load.WORKLOADS,
    *w7_tokenize.WORKLOADS,
    *w7b_decompress.WORKLOADS,
    *csv_lines.WORKLOADS,
    *parquet.WORKLOADS,
    *tars.WORKLOADS,
    *remote.WORKLOADS,
    *import_time.WORKLOADS,
    *resume.WORKLOADS,
    *startup.WORKLOADS,
    *prefetch.WORKLOADS,
    *tuner.WORKLOADS,
)


def find(name: str) -> Workload:
    """The workload of that name."""
    for workload in WORKLOADS:
        if workload.name == name:
            return workload
    raise KeyError(f"no workload {name!r}; there are {', '.join(each.name for each in WORKLOADS)}")
