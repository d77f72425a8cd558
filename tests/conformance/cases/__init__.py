"""All cases, from one table per family."""

from conformance.case import Case
from conformance.cases import (
    caches,
    chains,
    combine,
    failures,
    files,
    functions,
    generators,
    inner,
    pictures,
    randomness,
    rows,
    shuffles,
    skipping,
    sources,
    stored,
    tables,
    texts,
)

TABLES = (
    sources,
    stored,
    files,
    texts,
    tables,
    pictures,
    generators,
    rows,
    functions,
    inner,
    combine,
    shuffles,
    randomness,
    chains,
    caches,
    failures,
    skipping,
)

CASES: tuple[Case, ...] = tuple(case for table in TABLES for case in table.CASES)
BY_ID: dict[str, Case] = {case.id: case for case in CASES}

if len(BY_ID) != len(CASES):
    ids = [case.id for case in CASES]
    raise ValueError(f"case ids used twice: {sorted({i for i in ids if ids.count(i) > 1})}")
