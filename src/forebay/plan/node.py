"""One step of a plan, as the user wrote it or as a rule rewrote it."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, TypeVar

from forebay.block import Block
from forebay.lazy import cached_property
from forebay.plan.fingerprint import digest, function_name
from forebay.plan.made import file_stamp
from forebay.plan.text import brief, brief_parts, exact, written
from forebay.run import Access, Operator, Setup, Site

INFINITE = -1
UNKNOWN = -2
AUTOTUNE = -1

Build = Callable[["Node", Setup], Operator]
"""Makes the operator of an input; handed to ``Node.lower``."""

N = TypeVar("N", bound="Node")


@dataclass(frozen=True, slots=True)
class Traits:
    """What a kind of node keeps of its first input, for rules and checks to ask about.

    Args:
        one_to_one: row i of the output is made from row i of the input, and there are as many.
        same_elements: elements pass through as they are, though perhaps not all of them, or in another order.
        transparent: nothing about the rows changes at all, so that a cursor means the same with or without.
        chains: behind another of its kind it only adds inputs to those that the other has.
        makes_plans: makes plans of its own while it runs, so that how those run is part of its cursors.
        random: has a `seed`, which is filled in before running where the step is ``unseeded``.
        stores: keeps rows from one iteration to the next, under what its inputs were when it was written.
    """

    one_to_one: bool = False
    same_elements: bool = False
    transparent: bool = False
    chains: bool = False
    makes_plans: bool = False
    random: bool = False
    stores: bool = False


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a step has to know to say how much it will hold.

    Args:
        element: bytes of one of its elements.
        input: bytes of one of its input's elements.
        rows: how many of these there are, if that is known.
        setup: how the plan runs.
        scattered: whether its elements are asked for by number, in no order.
        look: a block of one of its input's elements, or of its own if it has no input; None if there is none, or if
            their size is known without looking at one.
        inside: what the steps of a plan hold beside blocks in hand, which is made of one of its input's elements and
            runs in a setup of its own; None if there is no element.
    """

    element: int
    input: int
    rows: int | None
    setup: Setup
    scattered: bool = False
    look: Callable[[], Block | None] = lambda: None
    inside: "Callable[[Callable[[Block], Node], Setup], Holding | None]" = lambda make, setup: None

    @property
    def block(self) -> int:
        """Bytes of a block of the step's elements: at least one of them."""
        return max(self.setup.block_bytes, self.element)


@dataclass(frozen=True, slots=True)
class Holding:
    """Bytes that a step holds at most, in memory and on disk, and why; `disk` is None if that cannot be told."""

    memory: int
    why: str
    disk: int | None = 0


@dataclass(frozen=True, eq=False, kw_only=True)
class Node(ABC):
    """A step and its inputs. Arguments are checked when it is made; nothing runs before ``lower``.

    The `nonce` is the seed of a random step that was given none. It belongs to the step, not to the dataset that it
    runs in, so that two datasets built on one shuffled dataset see the same order.
    """

    inputs: tuple["Node", ...] = ()
    label: str | None = None
    where: str = "?"
    nonce: int = field(default_factory=lambda: int.from_bytes(os.urandom(8), "little") >> 1, repr=False)

    kind: ClassVar[str]
    traits: ClassVar[Traits] = Traits()

    @property
    def input(self) -> "Node":
        """The only or first input."""
        return self.inputs[0]

    @cached_property
    def depth(self) -> int:
        """Steps one on another, from here down to the sources."""
        return 1 + max((node.depth for node in self.inputs), default=0)

    @property
    def site(self) -> Site:
        """What errors call this step."""
        return Site(self.kind, self.label, self.where)

    @property
    def unseeded(self) -> bool:
        """Whether this step draws random numbers and the user gave no seed for them."""
        return self.traits.random and getattr(self, "seed") is None  # noqa: B009 - only such steps have the field

    @property
    def redraws(self) -> bool:
        """Whether this step gives other rows, or another order, in every epoch."""
        return False

    @property
    def reorders(self) -> bool:
        """Whether the order is all that differs from epoch to epoch."""
        return self.redraws and self.traits.same_elements

    @property
    def repeats(self) -> bool:
        """Whether its input is gone through more than once in an iteration."""
        return False

    def check_use(self, reordered: bool) -> None:
        """Warn of what only the steps behind this one decide about. It is gone through several times.

        `reordered` says whether one of them puts elements into another order each time.
        """
        return

    def seeds(self) -> list[int]:
        """The seeds that this step draws from, once they are filled in."""
        seed = getattr(self, "seed", None) if self.traits.random else None
        return [] if seed is None else [seed]

    @abstractmethod
    def cardinality(self) -> int:
        """How many rows come out: a count, INFINITE or UNKNOWN."""

    def count_hint(self) -> str | None:
        """Which other arguments of this step would make ``cardinality`` known; None if none would."""
        return None

    @abstractmethod
    def lower(self, setup: Setup, build: Build) -> Operator:
        """The operator that does this step."""

    def spec(self, *inputs: Any) -> Any | None:
        """The element's structure with a TensorSpec at each leaf, given the inputs'; None if only running tells."""
        return inputs[0] if self.traits.same_elements else None

    def reads(self) -> tuple[str, ...]:
        """Paths and URLs of the files that this step reads, as far as they are known before it runs."""
        return ()

    def element_bytes(self, *inputs: int) -> int | None:
        """Bytes of an element, given those of the inputs' elements; None if only looking at one tells."""
        return inputs[0] if self.traits.same_elements and inputs else None

    @property
    def scatters(self) -> bool:
        """Whether it asks for its input's elements by number, in no order."""
        return False

    def holds(self, sizes: Sizes) -> Holding:
        """What this step holds while it runs."""
        return Holding(2 * sizes.block, "a block in hand and one in the making")

    def layout(self) -> str:
        """What a cursor of this step depends on besides its inputs: how it is run."""
        return self.kind

    def access(self) -> Access | None:
        """Rows by number, where this step and what is below it allow that."""
        return None

    def ignoring_errors(self, quiet: bool) -> "Node":
        """The same step, on the same inputs, with what fails in it left out."""
        return self

    def is_noop(self) -> bool:
        """Whether the rows that come out are exactly those that go in."""
        return False

    def with_inputs(self: N, *inputs: "Node") -> N:
        """The same step on other inputs."""
        return replace(self, inputs=inputs)

    def params(self) -> dict[str, Any]:
        """The arguments that make up this step, by name."""
        base = {each.name for each in fields(Node)}
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name not in base}

    def settings(self) -> dict[str, Any]:
        """The arguments that only decide how this step runs."""
        return {}

    def describe(self) -> str:
        """The step as a line to read."""
        return f"{self.kind}({self._arguments(self.params() | self.settings(), _shown)})"

    def signature(self) -> str:
        """The step as a line to compare: two steps with the same signature do the same."""
        return f"{self.kind}({self._arguments(self.params(), _compared)})"

    def chained_inputs(self) -> tuple["Node", ...]:
        """The inputs as if a chain of such steps were one, whatever changes nothing about the rows between them."""
        if not self.traits.chains:
            return self.inputs
        first = self.inputs[0]
        while first.traits.transparent:
            first = first.inputs[0]
        return (*first.chained_inputs(), *self.inputs[1:]) if type(first) is type(self) else self.inputs

    def _forebay_contents(self) -> Iterator[Any]:
        """All that decides about the rows, where a function refers to a dataset."""
        yield from self.chained_inputs()
        if not self.traits.transparent:
            yield from (self.signature(), tuple(sorted(self.params().items())), tuple(map(file_stamp, self.reads())))

    def _arguments(self, arguments: dict[str, Any], show: Callable[[str, Any], str]) -> str:
        """What is not as it is by default."""
        defaults = {each.name: each.default for each in fields(self)}
        given = {name: value for name, value in arguments.items() if value is not None}
        return ", ".join(
            f"{name}={show(name, value)}" for name, value in given.items() if value is not defaults.get(name)
        )


_MAY_BE_AUTOTUNED = ("buffer_size", "cycle_length", "num_parallel_calls")


def _shown(name: str, value: Any) -> str:
    if name in _MAY_BE_AUTOTUNED and value == AUTOTUNE:
        return "AUTOTUNE"
    if isinstance(value, list):
        return f"[{brief_parts([str(item) for item in value])}]"
    return function_name(value) if callable(value) else brief(written(value))


def _compared(name: str, value: Any) -> str:
    if value is None or isinstance(value, (bool, int, float, str)):
        return exact(brief(written(value)), written(value))
    kind = function_name(value) if callable(value) else type(value).__name__
    return f"{kind}#{digest(value)}"


def element_count(*counts: int) -> int:
    """The least of several cardinalities: what is left when the first of them ends."""
    known = [count for count in counts if count != INFINITE]
    return INFINITE if not known else UNKNOWN if UNKNOWN in known else min(known)
