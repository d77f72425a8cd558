"""Where rows come from; one file per source."""

from forebay.sources.counting import Counter, Range
from forebay.sources.generator import Generator
from forebay.sources.random import Random
from forebay.sources.slices import Slices, single_element, slices

__all__ = ["Counter", "Generator", "Random", "Range", "Slices", "single_element", "slices"]
