"""What the system tells about itself, in files, and about who may be looking."""

import os
import sys


def read_text(*path: str) -> str:
    """What is in such a file. Without ``pathlib``, whose import would take longer than that of any module of ours."""
    with open(os.path.join(*path)) as file:
        return file.read()


def on_terminal() -> bool:
    """Programs without a console have no standard error output at all, some close it, others put anything there."""
    try:
        return bool(sys.stderr.isatty())
    except Exception:
        return False
