"""``Dataset.load``: saved datasets, read by row number."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from forebay.block import LEAF, Block, Indices, Structure, TensorSpec, flatten
from forebay.block.objects import Objects
from forebay.block.strings import object_array
from forebay.errors import PlanError
from forebay.lazy import cached_property
from forebay.ledger import Lease
from forebay.plan.node import Build, Node
from forebay.plan.text import brief
from forebay.run import Access, Operator, ReadRows, Setup
from forebay.storage.manifest import Manifest, read_manifest
from forebay.storage.order import Turns
from forebay.storage.store import Store
from forebay.storage.structures import column_names


@dataclass(frozen=True, eq=False, kw_only=True)
class Saved(Node):
    """A saved dataset, or one shard of it."""

    path: str
    manifest: Manifest = field(repr=False)

    kind = "load"

    @cached_property
    def store(self) -> Store:
        """The files, opened when they are needed, and shared by all iterations."""
        return Store(self.path, self.manifest)

    @cached_property
    def turns(self) -> Turns | None:
        """The order in which shards take turns, if there are several."""
        lengths = self.manifest.shard_lengths()
        return Turns(lengths) if len(lengths) > 1 else None

    def cardinality(self) -> int:
        """Known from the manifest."""
        return self.manifest.rows

    def spec(self, *inputs: Any) -> Any | None:
        """Known from the manifest, unless there was no element to tell it by."""
        if not self.manifest.known:
            return None
        return self.manifest.elements.unflatten([leaf.spec() for leaf in self.manifest.leaves])

    def access(self) -> Access:
        """By number."""
        return _Rows(self)

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Read by number."""
        return ReadRows(self.site, self.access(), setup)

    def describe(self) -> str:
        """Where from, and how much."""
        files = len(self.manifest.files)
        return f"load({self.path!r}; {self.manifest.rows:,} elements in {files:,} file{'s' * (files != 1)})"

    def signature(self) -> str:
        """What was saved, wherever it lies now."""
        shards = ",".join(map(str, self.manifest.shards))
        return f"load({self.manifest.rows} elements, shards {brief(shards)})#{self.manifest.id}"


# A few rows out of each of many compressed batches take as long as all of them.
_DECODING_SECONDS = 0.25


class _Rows(Access):
    def __init__(self, node: Saved) -> None:
        super().__init__(node.manifest.rows)
        self._store = node.store
        self._turns = node.turns
        self._compression = node.manifest.compression

    def within(self, setup: Setup) -> list[Lease]:
        """Batches that were decoded."""
        lease = self._store.enter(setup.ledger)
        return [] if lease is None else [lease]

    @property
    def seconds(self) -> float:
        """Compressed batches are decoded as a whole."""
        return super().seconds if self._compression is None else _DECODING_SECONDS

    def gather(self, indices: Indices, epoch: int) -> Block:
        """By their numbers in the files."""
        return self._store.gather(indices if self._turns is None else self._turns.stored(indices))

    def read(self, start: int, stop: int, epoch: int) -> Block:
        """In large pieces, where rows lie in the order in which they come."""
        if self._turns is None:
            return self._store.read(start, stop)
        return super().read(start, stop, epoch)


@dataclass(frozen=True, eq=False, kw_only=True)
class SavedShards(Node):
    """The datasets of a saved dataset's shards, as elements of one: what a `reader_func` is given."""

    datasets: tuple[Any, ...] = field(repr=False)
    id: str

    kind = "load"

    def cardinality(self) -> int:
        """The number of shards."""
        return len(self.datasets)

    def spec(self, *inputs: Any) -> TensorSpec:
        """A dataset is an object like others."""
        return TensorSpec((), np.dtype("O"))

    def access(self) -> Access:
        """By number."""
        return _Objects(self.datasets)

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Read by number."""
        return ReadRows(self.site, self.access(), setup)

    def describe(self) -> str:
        """How many."""
        return f"load({len(self.datasets)} shards)"

    def signature(self) -> str:
        """What was saved."""
        return f"{self.describe()}#{self.id}"


class _Objects(Access):
    def __init__(self, objects: tuple[Any, ...]) -> None:
        super().__init__(len(objects))
        self._objects = object_array(objects)

    def gather(self, indices: Indices, epoch: int) -> Block:
        """The objects themselves."""
        return Block(LEAF, [Objects(self._objects[indices])], len(indices))


def saved(path: str, element_spec: Any, label: str | None, where: str) -> Saved:
    """The node of ``load``."""
    manifest = read_manifest(path, "load")
    if element_spec is not None:
        manifest = _as_given(manifest, element_spec)
    else:
        # Now, so that a class that cannot be found is an error on the user's line.
        _ = manifest.elements
    return Saved(path=path, manifest=manifest, label=label, where=where)


def _as_given(manifest: Manifest, element_spec: Any) -> Manifest:
    """The manifest with the user's own structure. PlanError if the saved elements are not of that kind."""
    specs, structure = flatten(element_spec, (TensorSpec,))
    for spec in specs:
        if not isinstance(spec, TensorSpec):
            raise PlanError(f"load(element_spec=...): {spec!r} is not a TensorSpec")
    names, have = column_names(structure), {leaf.name: leaf for leaf in manifest.leaves}
    if sorted(names) != sorted(have):
        raise PlanError(
            f"load(element_spec=...): leaves are {brief(str(sorted(names)))}, saved were {brief(str(sorted(have)))}"
        )
    for name, spec in zip(names, specs):
        found = have[name].spec()
        if not _fits(spec, found):
            raise PlanError(f"load(element_spec=...): {name} is {spec}, saved was {found}")
    return replace(manifest, given=_reordered(structure, names, manifest))


def _fits(wanted: TensorSpec, found: TensorSpec) -> bool:
    if wanted.dtype != found.dtype:
        return False
    if wanted.shape is None or found.shape is None:
        return True
    return len(wanted.shape) == len(found.shape) and all(
        None in (a, b) or a == b for a, b in zip(wanted.shape, found.shape)
    )


def _reordered(structure: Structure, names: list[str], manifest: Manifest) -> Structure:
    """The structure, if its leaves come in the order of the columns; dict keys are put in that order otherwise."""
    order = [leaf.name for leaf in manifest.leaves]
    if names == order:
        return structure
    place = {name: i for i, name in enumerate(order)}

    def sort(node: Structure, leaves: list[int]) -> Structure:
        if node.is_leaf:
            return node
        parts, done = [], 0
        for child in node.children:
            parts.append((leaves[done : done + child.size], child))
            done += child.size
        ranked = (
            sorted(range(len(parts)), key=lambda i: min(parts[i][0], default=0))
            if node.kind is dict
            else range(len(parts))
        )
        keys = tuple(node.keys[i] for i in ranked) if node.keys else ()
        return Structure(node.kind, keys, tuple(sort(parts[i][1], parts[i][0]) for i in ranked))

    sorted_structure = sort(structure, [place[name] for name in names])
    if column_names(sorted_structure) != order:
        raise PlanError("load(element_spec=...): its leaves come in another order than those that were saved")
    return sorted_structure
