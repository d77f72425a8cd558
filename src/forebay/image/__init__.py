"""Images as arrays: in another size, cut, mirrored, padded, scaled. What is called inside ``map``."""

from forebay.image.decode_and_resize import DecodeAndResize, decode_and_resize
from forebay.image.flip import flip_left_right, flip_up_down, random_flip_left_right, random_flip_up_down
from forebay.image.resize import resize
from forebay.image.transform import (
    center_crop,
    crop,
    normalize,
    pad,
    random_crop,
)

__all__ = [
    "DecodeAndResize",
    "center_crop",
    "crop",
    "decode_and_resize",
    "flip_left_right",
    "flip_up_down",
    "normalize",
    "pad",
    "random_crop",
    "random_flip_left_right",
    "random_flip_up_down",
    "resize",
]
