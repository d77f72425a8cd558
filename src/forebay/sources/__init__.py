"""Where rows come from; one file per source."""

from typing import TYPE_CHECKING

from forebay.lazy import on_first_use

__all__ = ["Counter", "Generator", "Random", "Range", "Slices", "signature_from_types", "single_element", "slices_of"]

if TYPE_CHECKING:
    from forebay.sources.counting import Counter, Range
    from forebay.sources.generator import Generator, signature_from_types
    from forebay.sources.random import Random
    from forebay.sources.slices import Slices, single_element, slices_of
else:
    __getattr__ = on_first_use(
        __name__,
        {
            "counting": "Counter Range",
            "generator": "Generator signature_from_types",
            "random": "Random",
            "slices": "Slices single_element slices_of",
        },
    )
