"""How a plan runs: operators that pull blocks, and what they share."""

from forebay.run.access import Access, ReadRows
from forebay.run.keys import key_of, uniforms
from forebay.run.operator import Operator, Setup, Site
from forebay.run.pace import Pace
from forebay.run.reader import Reader

__all__ = ["Access", "Operator", "Pace", "ReadRows", "Reader", "Setup", "Site", "key_of", "uniforms"]
