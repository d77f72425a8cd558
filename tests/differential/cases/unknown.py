"""Lengths: what each operator makes of an infinite or an unknown one."""

from collections.abc import Callable
from typing import Any

from differential.cases.case import case
from differential.sides import Side

# Read for their cardinality; few elements are looked at, but none of these may hang.
INPUTS: dict[str, Callable[[Side], Any]] = {
    "infinite": lambda d: d.range(3).repeat(),
    "unknown": lambda d: d.range(7).filter(lambda x: x > 1),
    "empty": lambda d: d.range(0),
    "known": lambda d: d.range(7),
}

OPERATORS: dict[str, Callable[[Side, Any], Any]] = {
    "map": lambda d, x: x.map(lambda v: v),
    "take-0": lambda d, x: x.take(0),
    "take-2": lambda d, x: x.take(2),
    "take-all": lambda d, x: x.take(-1),
    "skip-0": lambda d, x: x.skip(0),
    "skip-2": lambda d, x: x.skip(2),
    "shard": lambda d, x: x.shard(3, 2),
    "repeat-0": lambda d, x: x.repeat(0),
    "repeat-1": lambda d, x: x.repeat(1),
    "repeat-2": lambda d, x: x.repeat(2),
    "repeat-forever": lambda d, x: x.repeat(),
    "batch": lambda d, x: x.batch(2),
    "batch-drop": lambda d, x: x.batch(2, True),
    "unbatch": lambda d, x: x.batch(2).unbatch(),
    "unbatch-drop": lambda d, x: x.batch(2, True).unbatch(),
    "enumerate": lambda d, x: x.enumerate(),
    "prefetch": lambda d, x: x.prefetch(1),
    "shuffle-one": lambda d, x: x.shuffle(1),
    "filter": lambda d, x: x.filter(lambda v: v > 0),
    "take-while": lambda d, x: x.take_while(lambda v: v < 2),
    "flat-map": lambda d, x: x.flat_map(lambda v: d.range(v)),
    "options": lambda d, x: x.with_options(d.Options()),
}

PAIRS: dict[str, Callable[[Side, Any, Any], Any]] = {
    "zip": lambda d, x, y: d.zip(x, y),
    "concatenate": lambda d, x, y: x.concatenate(y),
}

_DIFFERS: dict[str, tuple[str, ...]] = {
    "map-of-empty": ("spec-of-first",),
    "unbatch-of-empty": ("known-length",),
    "flat-map-of-empty": ("spec-of-first",),
}

CASES = (
    *(
        case(id, lambda d, apply=apply, make=make: apply(d, make(d)), *_DIFFERS.get(id, ()))
        for operator, apply in OPERATORS.items()
        for name, make in INPUTS.items()
        for id in [f"{operator}-of-{name}"]
    ),
    *(
        case(
            f"{operator}-of-{left}-and-{right}",
            lambda d, apply=apply, left=left, right=right: apply(d, INPUTS[left](d), INPUTS[right](d)),
        )
        for operator, apply in PAIRS.items()
        for left in INPUTS
        for right in INPUTS
    ),
    case("skip-all-of-unknown", lambda d: INPUTS["unknown"](d).skip(-1), "known-length"),
    case("skip-all-of-infinite", lambda d: INPUTS["infinite"](d).skip(-1), "known-length"),
    case("take-of-concatenated-unknown", lambda d: d.range(3).concatenate(INPUTS["unknown"](d)).take(2)),
    case("unknown-forever-take", lambda d: INPUTS["unknown"](d).repeat().take(4)),
    case("empty-forever-concatenate", lambda d: d.range(0).repeat().concatenate(d.range(3))),
    case("long-unbatch", lambda d: d.range(2**40).batch(8, True).unbatch()),
    case("long-batch-repeat", lambda d: d.range(2**40).batch(7).repeat(3)),
)
