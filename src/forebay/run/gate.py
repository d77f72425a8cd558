"""When a free order may begin."""


class Gate:
    """Closed until a resumed plan has reached the row it is to continue with; shared by all operators of the plan.

    A cursor saved by a plan that kept the order counts rows in that order. They are passed over in order too, by
    whichever reader drops them, before anything may overtake.
    """

    __slots__ = ("open",)

    def __init__(self, open: bool = True) -> None:
        self.open = open
