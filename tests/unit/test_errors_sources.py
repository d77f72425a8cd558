"""Errors of steps that a source adds for the user, who wrote no ``map``: by the name of the source."""

from pathlib import Path
from typing import Any

import pytest

import forebay as fb
from images import encoded, picture


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Images of different sizes in one folder."""
    folder = tmp_path / "photos"
    (folder / "cat").mkdir(parents=True)
    for i in range(4):
        (folder / "cat" / f"{i}.png").write_bytes(encoded(picture(8 + i, 9), "PNG"))
    return folder


def test_images_that_cannot_be_read_are_those_of_from_images(photos: Path) -> None:
    (photos / "cat" / "2.png").write_bytes(b"")
    for images in (fb.Dataset.from_images(photos), fb.Dataset.from_images(photos).shuffle(seed=1).batch(1)):
        with pytest.raises(
            fb.FileError, match=r"^from_images at test_errors_sources\.py:\d+, element \d: .*2\.png: not"
        ):
            list(images)
    with pytest.raises(fb.FileError, match=r"^from_images 'mine' at "):
        list(fb.Dataset.from_images(photos, name="mine"))


@pytest.mark.parametrize("by", [
    lambda images: images,
    lambda images: images.shuffle(seed=1),
    lambda images: images.map(lambda image, label: (image, label)),
])  # fmt: skip
def test_images_of_different_sizes_are_told_of_size(photos: Path, by: Any) -> None:
    with pytest.raises(fb.DataError, match=r"form a batch: give from_images a size, or make them equal with map\(\)"):
        list(by(fb.Dataset.from_images(photos)).batch(4))
    assert len(list(by(fb.Dataset.from_images(photos, size=(4, 4))).batch(4))) == 1


def test_members_that_a_function_of_from_webdataset_refuses(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    fb.Dataset.from_tensor_slices({"txt": ["1", "x"]}).to_webdataset(path)
    with pytest.raises(fb.ForebayError, match=r"^from_webdataset at test_errors_sources\.py:\d+, element 1: "):
        list(fb.Dataset.from_webdataset(path, ["txt"], decode={"txt": int}))
