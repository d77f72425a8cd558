"""Small blocks put together, so that later operators do not pay for each of them."""

import time
from collections.abc import Callable

from forebay.block import Block, concat_blocks
from forebay.errors import ForebayError
from forebay.run.operator import Operator
from forebay.run.pace import Pace


def coalesce(operator: Operator, pace: Pace, pull: Callable[[], Block | None]) -> Block | None:
    """One block from as many small ones as `pull` gives up to the pace; None at the end.

    The rows that were there before an error come first, the error with the operator's next pull.
    """
    operator.raise_pending()
    began = time.perf_counter()
    first = pull()
    if first is None:
        return None
    blocks, rows, size = [first], first.rows, first.nbytes
    while 4 * rows <= pace.rows and 4 * size <= pace.block_bytes:
        try:
            block = pull()
        except ForebayError as error:
            operator.fail_next(error)
            break
        if block is None:
            break
        blocks.append(block)
        rows, size = rows + block.rows, size + block.nbytes
        if not pace.in_time(began):
            break
    pace.observe(rows, size, time.perf_counter() - began)
    return concat_blocks(blocks)
