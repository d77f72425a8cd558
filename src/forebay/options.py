"""Settings of a pipeline that never change what it produces."""

from dataclasses import dataclass, fields, replace

from forebay.errors import PlanError


@dataclass
class Options:
    """How a dataset runs. No option changes its elements or their order.

    Args:
        optimize: rewrite the plan before running it; see ``Dataset.explain``.
        block_bytes: the size that blocks grow to. Larger blocks cost less per row and more memory per stage.

    A field left at ``None`` is inherited from the options set further up, then from the defaults.

    >>> import forebay as fb
    >>> ds = fb.Dataset.range(3).with_options(fb.Options(block_bytes=1 << 16))
    >>> ds.options().block_bytes
    65536
    """

    optimize: bool | None = None
    block_bytes: int | None = None

    def __post_init__(self) -> None:
        self.check()

    def check(self) -> None:
        """Raise PlanError on a value that cannot be meant; fields may have been set after construction."""
        if self.optimize is not None and not isinstance(self.optimize, bool):
            raise PlanError(f"Options.optimize must be True, False or None, got {self.optimize!r}")
        size = self.block_bytes
        if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
            raise PlanError(f"Options.block_bytes must be a whole number of at least 1, got {size!r}")

    def merged(self, later: "Options") -> "Options":
        """These options with every field that `later` sets taken from there."""
        given = {f.name: getattr(later, f.name) for f in fields(later) if getattr(later, f.name) is not None}
        return replace(self, **given)


DEFAULTS = Options(optimize=True, block_bytes=1 << 20)
