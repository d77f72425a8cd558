"""Record batches from files, looked at before anybody follows what they say."""

from typing import Any

from forebay.storage.arrow import arrow


def check_batch(batch: Any) -> None:
    """Whether all offsets lead somewhere and all text is text: Arrow looks at neither, and whoever follows a wrong
    offset reads memory that is not theirs. Here, so that nobody gets a batch that has not been looked at."""
    pa = arrow()
    try:
        batch.validate(full=True)
    except pa.ArrowInvalid:
        # What is under a null leads nowhere, and need not: it comes from flatten() as null.
        for column in batch.columns:
            _check_shown(column)


def _check_shown(array: Any) -> None:
    if not arrow().types.is_struct(array.type):
        array.validate(full=True)
        return
    array.validate()
    for child in array.flatten():
        _check_shown(child)
