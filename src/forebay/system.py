"""What the system tells about itself, in files, and about who may be looking."""

import os
import sys
from typing import TextIO


def open_text(*path: str) -> TextIO:
    """Such a file. Names of processes and files in it may be of any bytes, also cut in the middle of a character."""
    return open(os.path.join(*path), encoding="utf-8", errors="surrogateescape", newline="\n")


def read_text(*path: str) -> str:
    """What is in such a file. Without ``pathlib``, whose import would take longer than that of any module of ours."""
    with open_text(*path) as file:
        return file.read()


def on_terminal() -> bool:
    """Programs without a console have no standard error output at all, some close it, others put anything there."""
    try:
        return bool(sys.stderr.isatty())
    except Exception:
        return False
