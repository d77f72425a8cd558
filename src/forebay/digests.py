"""BLAKE2b without the rest of ``hashlib``, which loads OpenSSL: that takes as long as ten modules of ours."""

try:
    # What hashlib hands out too.
    from _blake2 import blake2b
except ImportError:  # An interpreter that has it elsewhere.
    from hashlib import blake2b

__all__ = ["blake2b"]
