"""What a running program does with its memory. See ``watch``."""

from forebay.observe.verdict import ChildGrowth, HolderGrowth, StageGrowth, TypeGrowth, Verdict
from forebay.observe.watch import Watch, watch

__all__ = ["ChildGrowth", "HolderGrowth", "StageGrowth", "TypeGrowth", "Verdict", "Watch", "watch"]
