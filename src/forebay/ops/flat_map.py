"""``flat_map``: a dataset for every element, one after another."""

from dataclasses import dataclass
from typing import Any

from forebay.ops.interleave_schedule import ENDLESS, Cycle
from forebay.ops.makes_datasets import MakesDatasets


@dataclass(frozen=True, eq=False, kw_only=True)
class FlatMap(MakesDatasets):
    """``Dataset.flat_map``."""

    kind = "flat_map"

    def params(self) -> dict[str, Any]:
        """The function."""
        return {"map_func": self.map_func} | self.error_params()

    def cycle(self, threads: int, free_order: bool) -> Cycle:
        """A turn lasts to the end. In a free order, a dataset that has rows gives them while another has none."""
        return Cycle(threads if free_order else 1, ENDLESS, threads, free_order)
