"""TensorFlow for tests that need it: imported when a test first uses it, not when tests are collected."""

from typing import Any

from differential.sides import tensorflow


class _TensorFlow:
    def __getattr__(self, name: str) -> Any:
        return getattr(tensorflow(), name)


tf: Any = _TensorFlow()
