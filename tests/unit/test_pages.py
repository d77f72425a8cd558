"""Memory for buffers that stay, where there is none."""

import re

import pytest

from forebay.block.pages import own_pages


def test_no_memory_is_no_error_of_a_file() -> None:
    """mmap itself has an OSError, the kind that files and disks have."""
    size = 1 << 60
    with pytest.raises(MemoryError, match=re.escape(f"no memory for a buffer of {size:,} bytes: ")):
        own_pages(size)
