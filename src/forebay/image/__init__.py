"""Images as arrays: in another size, cut, mirrored, padded, scaled. What is called inside ``map``."""

from forebay.image.decode_and_resize import DecodeAndResize, decode_and_resize
from forebay.image.resize import resize
from forebay.image.transform import (
    center_crop,
    crop,
    flip_left_right,
    normalize,
    pad,
    random_crop,
    random_flip_left_right,
)

__all__ = [
    "DecodeAndResize",
    "center_crop",
    "crop",
    "decode_and_resize",
    "flip_left_right",
    "normalize",
    "pad",
    "random_crop",
    "random_flip_left_right",
    "resize",
]
