"""Random pipelines as data: a source and a few operators, each a tuple of a name and its arguments.

A chain is drawn while tf.data builds it, so that `element_spec` and `cardinality` of the real thing say which
operators make sense next: nothing here has to model what an operator does.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from differential.cases.case import Point
from differential.outcome import Outcome, read
from differential.sides import Side, oracle

Step = tuple[Any, ...]

INFINITE = -1

# Derandomised: a failure in a change is a failure of that change, not of the draw.
FIXED = settings(
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)

_GRID = np.arange(20).reshape(5, 4)
_WORDS = np.array([b"a", b"", b"long word", b"\x00", b"a"], dtype=object)

SOURCES: dict[str, Callable[..., Any]] = {
    "range": lambda d, *arguments: d.range(*arguments),
    "vector": lambda d: d.slices(np.arange(7) * 3 - 4),
    "rows": lambda d: d.slices(_GRID),
    "tuple": lambda d: d.slices((np.arange(5), _GRID, _WORDS)),
    "dict": lambda d: d.slices({"x": np.arange(5), "w": _WORDS, "f": np.linspace(0, 2, 5)}),
    "namedtuple": lambda d: d.slices(Point(np.arange(5), (_GRID * 0.5, np.arange(5)))),
    "tensors": lambda d: d.tensors((_GRID, np.arange(5))),
    "generator": lambda d, n: d.generator(lambda: iter(range(n)), output_signature=d.spec()),
    "ragged": lambda d, n: d.generator(lambda: map(range, range(n)), output_signature=d.spec((None,))),
    "counter": lambda d: d.counter(2, -1),
}


def _element(arguments: tuple[Any, ...]) -> Any:
    """What a function was called with, put together again."""
    return arguments[0] if len(arguments) == 1 else arguments


def _leaves(tree: Any) -> list[Any]:
    if isinstance(tree, Mapping):
        return [leaf for part in tree.values() for leaf in _leaves(part)]
    if isinstance(tree, tuple):
        return [leaf for part in tree for leaf in _leaves(part)]
    return [] if tree is None else [tree]


def _each_number(d: Side, tree: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(tree, Mapping):
        return {key: _each_number(d, part, change) for key, part in tree.items()}
    if isinstance(tree, tuple):
        parts = [_each_number(d, part, change) for part in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else tuple(parts)
    return change(tree) if d.f.is_number(tree) else tree


def _total(d: Side, tree: Any) -> Any:
    """A number that depends on the element; int64 where it has no number, whatever else it has."""
    numbers = [leaf for leaf in _leaves(tree) if d.f.is_number(leaf)]
    return d.f.sum(numbers[0]) if numbers else np.int64(len(_leaves(tree)))


MAPS: dict[str, Callable[[Side, Any], Any]] = {
    "double": lambda d, e: _each_number(d, e, lambda x: x * 2),
    "less": lambda d, e: _each_number(d, e, lambda x: x - 3),
    "halve": lambda d, e: _each_number(d, e, lambda x: x / 2),
    "negate-modulo": lambda d, e: _each_number(d, e, lambda x: -x % 5),
    "pair": lambda d, e: (e, _each_number(d, e, lambda x: x + 1)),
    "wrap": lambda d, e: (e,),
    "dict": lambda d, e: {"z": e, "a": _total(d, e)},
    "point": lambda d, e: Point(_total(d, e), e),
    "total": lambda d, e: _total(d, e),
    "first": lambda d, e: _leaves(e)[0],
    "last": lambda d, e: _leaves(e)[-1],
    "stack": lambda d, e: d.f.stack([_total(d, e), _total(d, e)]),
    "constant": lambda d, e: {"e": e, "n": None, "k": np.float32(1.5), "s": b"k"},
}

PREDICATES: dict[str, Callable[[Side, Any], Any]] = {
    "even": lambda d, e: _total(d, e) % 2 == 0,
    "low": lambda d, e: _total(d, e) < 6,
    "all": lambda d, e: True,
    "none": lambda d, e: False,
}

INNER: dict[str, Callable[[Side, Any], Any]] = {
    "again": lambda d, e: d.tensors(e).repeat(2),
    "none": lambda d, e: d.tensors(e).take(0),
    "range": lambda d, e: d.range(_total(d, e) % 4),
    "slices": lambda d, e: d.slices(e),
    "filtered": lambda d, e: d.range(4).filter(lambda x: x < _total(d, e)).map(lambda x: (x, e)),
}

STEPS: dict[str, Callable[..., Any]] = {
    "map": lambda d, ds, name: ds.map(lambda *a: MAPS[name](d, _element(a))),
    "explode": lambda d, ds, bad: ds.map(lambda *a: d.f.check(_total(d, _element(a)), _total(d, _element(a)) != bad)),
    "filter": lambda d, ds, name: ds.filter(lambda *a: PREDICATES[name](d, _element(a))),
    "take_while": lambda d, ds, name: ds.take_while(lambda *a: PREDICATES[name](d, _element(a))),
    "flat_map": lambda d, ds, name: ds.flat_map(lambda *a: INNER[name](d, _element(a))),
    "batch": lambda d, ds, size, drop: ds.batch(size, drop_remainder=drop),
    "unbatch": lambda d, ds: ds.unbatch(),
    "take": lambda d, ds, count: ds.take(count),
    "skip": lambda d, ds, count: ds.skip(count),
    "shard": lambda d, ds, shards, index: ds.shard(shards, index),
    "repeat": lambda d, ds, count: ds.repeat(count),
    "concatenate": lambda d, ds, count: ds.concatenate(ds.take(count)),
    "zip": lambda d, ds, count: d.zip(ds, ds.skip(count)),
    "zip-counter": lambda d, ds: d.zip({"n": d.counter(5), "e": ds}),
    "enumerate": lambda d, ds, start: ds.enumerate(start),
    "prefetch": lambda d, ds, count: ds.prefetch(count),
    # Buffer 1: the one shuffle whose order both must share. The seed keeps tf.data off Python's global one.
    "shuffle": lambda d, ds: ds.shuffle(1, seed=1),
}


@dataclass(frozen=True)
class Chain:
    """A source and the steps after it, and what tf.data made of them: None if it refused the last step."""

    source: Step
    steps: tuple[Step, ...] = ()
    made: Any = field(default=None, repr=False, compare=False)

    def build(self, side: Side) -> Any:
        """The dataset in that library."""
        dataset = SOURCES[self.source[0]](side, *self.source[1:])
        for name, *arguments in self.steps:
            dataset = STEPS[name](side, dataset, *arguments)
        return dataset

    def of_oracle(self) -> Outcome:
        """What tf.data does with it; made once, while drawing, because tracing functions takes its time."""
        return Outcome(failed="build") if self.made is None else read(oracle(), self.made)


def _counts(*counts: int | None) -> st.SearchStrategy[Any]:
    return st.sampled_from(counts)


def _step(name: str, *arguments: st.SearchStrategy[Any]) -> st.SearchStrategy[Step]:
    return st.tuples(st.just(name), *arguments)


# The usual is listed more often than the odd: most chains should have elements left to compare.
ARGUMENTS: dict[str, tuple[Step, ...]] = {
    "range": ((10,), (12,), (4, 20), (-3, 20, 2), (4, -9, -2), (1,), (3, 3)),
    "generator": ((6,), (8,), (0,)),
    "ragged": ((4,), (1,)),
}

_ALWAYS: tuple[st.SearchStrategy[Step], ...] = (
    _step("map", st.sampled_from(sorted(MAPS))),
    _step("map", st.sampled_from(sorted(MAPS))),
    _step("batch", _counts(2, 3, 1, 7), st.just(False)),
    _step("batch", _counts(2, 3), st.just(True)),
    _step("take", _counts(4, 6, 100, -1, 3, 5, 1, 0)),
    _step("skip", _counts(1, 2, 0, 1, 2, 4, 1, 2, 3, 100)),
    st.sampled_from(
        [
            ("shard", 2, 0),
            ("shard", 2, 1),
            ("shard", 3, 2),
            ("shard", 1, 0),
            ("shard", 11, 0),
            ("shard", 9, 8),
        ]
    ),
    _step("repeat", _counts(2, 3, None, -1, 1, 2, 3, 0)),
    _step("concatenate", _counts(2, -1, 0)),
    _step("zip", _counts(1, 0, 3)),
    _step("zip-counter"),
    _step("enumerate", _counts(0, -4)),
    _step("prefetch", _counts(1, 0, 3, -1)),
    _step("shuffle"),
)

_FINITE: tuple[st.SearchStrategy[Step], ...] = (
    _step("filter", st.sampled_from(["even", "low", "all"] * 3 + ["none"])),
    _step("take_while", st.sampled_from(["low", "all"] * 4 + ["even", "none"])),
    _step("flat_map", st.sampled_from(["again"] * 5 + ["none"])),
)


def _sensible(dataset: Any, exploding: bool) -> st.SearchStrategy[Step]:
    """The steps that may follow a dataset of tf.data's."""
    # An endless input of which nothing is left would never come back, in either library.
    endless = dataset.cardinality() == INFINITE
    steps = list(_ALWAYS if endless else _ALWAYS + _FINITE)
    specs = [leaf for leaf in _leaves(dataset.element_spec) if hasattr(leaf, "dtype")]
    ranks = [leaf.shape.rank for leaf in specs]
    if None not in ranks and 0 not in ranks and len(sizes := {leaf.shape[0] for leaf in specs}) == 1:
        if not endless:
            steps.append(_step("flat_map", st.just("slices")))
        if not endless or sizes.pop():
            steps += [_step("unbatch")] * 6
    number = next((leaf for leaf in specs if leaf.dtype.is_floating or leaf.dtype.is_integer), None)
    if number is not None and number.dtype.name == "int64":
        if not endless:
            steps.append(_step("flat_map", st.sampled_from(["range", "filtered"])))
        if exploding:
            steps += [_step("explode", _counts(0, 2, 4))] * 4
    return st.one_of(steps)


def _applied(dataset: Any, name: str, *rest: Any) -> Any:
    *arguments, side = rest
    return STEPS[name](side, dataset, *arguments)


@st.composite
def chains(
    draw: st.DrawFn, sources: Sequence[str] = tuple(SOURCES), longest: int = 6, exploding: bool = False
) -> Chain:
    """A chain that tf.data builds, or whose last step it refuses to build."""
    side = oracle()
    name = draw(st.sampled_from(sources))
    source = (name, *draw(st.sampled_from(ARGUMENTS.get(name, ((),)))))
    made = side.call(Chain(source).build)
    steps: list[Step] = []
    for _ in range(draw(st.integers(1, longest))):
        steps.append(draw(_sensible(made, exploding)))
        try:
            made = side.call(partial(_applied, made, *steps[-1]))
        except side.errors:
            return Chain(source, tuple(steps))
        if len(_leaves(made.element_spec)) > 12:
            break
    return Chain(source, tuple(steps), made)
