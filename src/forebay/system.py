"""Files in which the system tells about itself."""

import os


def read_text(*path: str) -> str:
    """What is in one of them. Without ``pathlib``, whose import would take longer than that of any module of ours."""
    with open(os.path.join(*path)) as file:
        return file.read()
