"""Images: broken ones, arguments, columns, and what is drawn."""

from __future__ import annotations

import logging
import sys
import tracemalloc
import zlib
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import forebay as fb
from forebay import _native
from images import encoded, gif, jpeg, picture, png_of

ROWS = b"\0" + bytes(3 * 5)


def bmp(height: int = 4, width: int = 5) -> bytes:
    return encoded(picture(height, width), "BMP")


BROKEN = {
    "nothing": (b"", "no bytes at all"),
    "text": (b"hello, world", "not a JPEG, PNG, GIF, BMP or WebP image"),
    "JPEG, two bytes": (b"\xff\xd8", "end inside its header"),
    "JPEG, no frame": (b"\xff\xd8\xff\xd9", "no frame header"),
    "JPEG, half": (jpeg()[:900], "cut short"),
    "JPEG, no end": (jpeg()[:-60], "cut short"),
    "JPEG, no lines": (jpeg()[:163] + b"\0\0" + jpeg()[165:], "no pixels"),
    "PNG, 65k x 65k": (png_of(65_000, 65_000, zlib.compress(b"")), "4,225,000,000 pixels, and max_pixels is"),
    "PNG, 2**32 wide": (png_of(2**32 - 1, 1, b""), "no valid header"),
    "PNG, header only": (png_of(5, 4, b"")[:29], "cut short"),
    "PNG, half": (encoded(picture(40, 40), "PNG")[:800], "cut short"),
    "PNG, a bit": (encoded(picture(40, 40), "PNG").replace(b"IDAT", b"IDBT"), "checksum"),
    "PNG, few rows": (png_of(5, 4, zlib.compress(ROWS * 2)), "damaged"),
    "PNG, not zlib": (png_of(5, 4, b"garbage"), "damaged"),
    "PNG, no rows": (png_of(0, 4, b""), "no pixels"),
    "GIF, half": (gif(2)[: len(gif(2)) // 2], "cut short"),
    "GIF, no frames": (b"GIF89a" + bytes([5, 0, 5, 0, 0, 0, 0]) + b";", "no frames"),
    "BMP, half": (bmp(20, 20)[:600], "cut short"),
    "BMP, huge": (bmp()[:18] + b"\xff\xff\xff\x7f\xff\xff\xff\x7f" + bmp()[26:], "cut short"),
    "WebP, half": (encoded(picture(20, 20), "WEBP")[:120], "cut short"),
    "WebP, no picture": (b"RIFF\x10\0\0\0WAVEfmt " + bytes(8), "no valid header"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_images_are_refused(name: str) -> None:
    data, reason = BROKEN[name]
    with pytest.raises(fb.DataError, match=reason):
        fb.io.decode_image(data)
    with pytest.raises(fb.DataError):
        fb.image.decode_and_resize(data, (8, 8))


def test_nothing_is_allocated_for_a_size_that_is_only_claimed() -> None:
    data = png_of(65_000, 65_000, zlib.compress(bytes(100_000)))
    fb.io.decode_png(encoded(picture(2, 2), "PNG"))  # What libraries need for themselves.
    tracemalloc.start()
    try:
        with pytest.raises(fb.DataError, match="max_pixels"):
            fb.io.decode_png(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_the_limit_is_the_callers() -> None:
    for decode, data in ((fb.io.decode_jpeg, jpeg(10, 10)), (fb.io.decode_png, encoded(picture(10, 10), "PNG"))):
        assert decode(data, max_pixels=100).shape == (10, 10, 3)
        with pytest.raises(fb.DataError, match="10 x 10: 100 pixels, and max_pixels is 99"):
            decode(data, max_pixels=99)
    with pytest.raises(fb.DataError, match="9 x 12 x 3 frames: 324 pixels"):
        fb.io.decode_image(gif(3), max_pixels=200)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_damage_leads_to_anything_but_an_image_or_a_data_error(data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from([jpeg(24, 24), encoded(picture(9, 9), "PNG"), gif(2), bmp()]))
    damaged = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        made = fb.io.decode_image(bytes(damaged), max_pixels=100_000)
    except fb.DataError:
        return
    assert made.dtype == np.uint8


def test_what_is_cut_short_can_be_had_as_far_as_it_goes() -> None:
    whole = jpeg(64, 64)
    made = fb.io.decode_jpeg(whole[:-200], try_recover_truncated=True)
    np.testing.assert_array_equal(made[:16], fb.io.decode_jpeg(whole)[:16])


def test_bytes_too_many_are_passed_over() -> None:
    whole = jpeg()
    filled = whole[:-2] + b"\x12\x34\x56" + whole[-2:]
    np.testing.assert_array_equal(fb.io.decode_jpeg(filled), fb.io.decode_jpeg(whole))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: fb.io.decode_jpeg(jpeg(), channels=2), "channels must be one of 0, 1, 3"),
        (lambda: fb.io.decode_jpeg(jpeg(), ratio=3), "ratio must be one of 1, 2, 4, 8"),
        (lambda: fb.io.decode_png(b"", dtype=np.int8), "dtype must be one of uint8, uint16"),
        (lambda: fb.image.resize(picture(4, 4), (0, 4)), "size must be a height and a width"),
        (lambda: fb.image.resize(picture(4, 4), 4), "size must be a height and a width"),
        (lambda: fb.image.resize(picture(4, 4), (2, 2), "cubic"), "method must be one of nearest, area, bilinear"),
        (lambda: fb.image.random_crop(picture(4, 4), (2, 2), 7), "give the generator"),
        (lambda: fb.image.normalize(picture(4, 4), [0, 0], 1), "one for each of 3 channels"),
        (lambda: fb.image.normalize(picture(4, 4), 0, 0), "above 0"),
        (lambda: fb.image.DecodeAndResize((2, 2), channels=2), "channels must be 1, 3 or 4"),
    ],
)
def test_arguments_that_cannot_be_meant(call: Any, text: str) -> None:
    with pytest.raises(fb.PlanError, match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: fb.io.decode_jpeg("a.jpg"), "contents must be bytes, got str; read_file"),
        (lambda: fb.io.decode_jpeg(encoded(picture(4, 4), "PNG")), "not a JPEG but a PNG image; decode_image"),
        (lambda: fb.image.resize(np.zeros((4, 4)), (2, 2)), "got shape \\(4, 4\\)"),
        (lambda: fb.image.resize(np.zeros((4, 0, 3)), (2, 2)), "has no pixels"),
        (lambda: fb.image.resize(picture(4, 4), (2, 2), out=np.zeros((2, 2, 3), np.int8)), "out has shape"),
        (lambda: fb.image.crop(picture(4, 4), 2, 2, (3, 1)), "beyond an image of size"),
        (lambda: fb.image.random_crop(picture(4, 4), (5, 2), np.random.default_rng()), "too small; resize or pad"),
        (lambda: fb.image.pad(picture(4, 4), (3, 9)), "crop or resize"),
    ],
)
def test_images_that_do_not_fit(call: Any, text: str) -> None:
    with pytest.raises(fb.DataError, match=text):
        call()


def test_the_kernel_checks_what_it_is_told() -> None:
    image, out = np.zeros((1, 4, 4, 3), np.float32), np.zeros((1, 2, 2, 3), np.float32)
    good = np.array([0, 2]), np.ones((2, 2), np.float32)
    _native.resize(image, *good, *good, out)
    for bad in (
        (np.array([0, 3]), good[1]),
        (np.array([-1, 0]), good[1]),
        (np.array([0]), good[1]),
        (good[0], np.ones((2, 5), np.float32)),
        (good[0], np.ones((2, 0), np.float32)),
    ):
        for axes in ((*bad, *good), (*good, *bad)):
            with pytest.raises((ValueError, IndexError)):
                _native.resize(image, *axes, out)
    with pytest.raises(ValueError, match="channels"):
        _native.resize(image, *good, *good, np.zeros((1, 2, 2, 4), np.float32))


def test_values_that_are_no_numbers_and_values_beyond_are_clipped() -> None:
    image = np.array([[[np.nan], [-9.0], [300.0], [7.5], [np.inf], [-np.inf]]])
    assert fb.image.resize(image, (1, 6), "area", dtype=np.uint8).reshape(-1).tolist() == [0, 0, 255, 8, 255, 0]


def test_a_missing_library_is_named() -> None:
    for missing, call in (
        ("simplejpeg", lambda: fb.io.decode_jpeg(jpeg())),
        ("cv2", lambda: fb.io.decode_png(encoded(picture(4, 4), "PNG"))),
        ("cv2", lambda: fb.Dataset.from_images("nowhere")),
    ):
        with mock.patch.dict(sys.modules, {missing: None}), pytest.raises(fb.PlanError, match=r"forebay\[image\]"):
            call()


def test_batches_are_the_memory_that_images_were_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    data = [jpeg(40 + i, 60, seed=i) for i in range(8)]
    dataset = fb.Dataset.from_tensor_slices(data).map(fb.image.DecodeAndResize((16, 12))).batch(4)
    expected = np.stack([fb.image.decode_and_resize(each, (16, 12)) for each in data])
    make, written = fb.image.DecodeAndResize.make, []

    def noted(self: Any, value: Any, out: Any = None) -> Any:
        written.append(out)
        return make(self, value, out)

    monkeypatch.setattr(fb.image.DecodeAndResize, "make", noted)

    def is_written_to() -> bool:
        written.clear()
        batches = list(dataset)
        np.testing.assert_array_equal(np.concatenate(batches), expected)
        return all(any(np.shares_memory(batch, out) for batch in batches) for out in written)

    # Rows that take long come in smaller blocks, of which a batch is put together; on a busy machine any may.
    assert any(is_written_to() for _ in range(50))


@pytest.mark.parametrize("optimize", [True, False])
def test_rows_before_a_broken_image_come_out_first(optimize: bool) -> None:
    data = [jpeg(seed=0), jpeg(seed=1), b"broken", jpeg(seed=2)]
    options = fb.Options(optimize=optimize)
    dataset = fb.Dataset.from_tensor_slices(data).map(fb.image.DecodeAndResize((8, 8))).with_options(options)
    with iter(dataset) as it:
        assert [next(it).shape for _ in range(2)] == [(8, 8, 3)] * 2
        with pytest.raises(fb.FunctionError, match="element 2: DecodeAndResize raised DataError"):
            next(it)


def test_what_is_drawn_follows_the_element_and_nothing_else() -> None:
    images = np.stack([picture(12, 10, seed) for seed in range(20)])

    def change(image: Any, rng: np.random.Generator) -> Any:
        return fb.image.random_flip_left_right(fb.image.random_crop(image, (7, 5), rng), rng)

    base = fb.Dataset.from_tensor_slices(images)
    plain = np.stack(list(base.map(change, rng=True, seed=5)))
    threads = np.stack(list(base.map(change, num_parallel_calls=2, executor="thread", rng=True, seed=5)))
    np.testing.assert_array_equal(threads, plain)
    for image, cut in zip(images, plain):
        places = [image[y : y + 7, x : x + 5] for y in range(6) for x in range(6)]
        assert any(np.array_equal(cut, place) or np.array_equal(cut, place[:, ::-1]) for place in places)


@pytest.mark.parametrize("seed", range(20))
def test_one_image_is_drawn_for_as_a_batch_of_one(seed: int) -> None:
    image = picture(9, 8)
    for call in (
        lambda x, rng: fb.image.random_crop(x, (3, 2), rng),
        fb.image.random_flip_left_right,
        fb.image.random_flip_up_down,
    ):
        one, batch = np.random.default_rng(seed), np.random.default_rng(seed)
        np.testing.assert_array_equal(call(image, one), call(image[None], batch)[0])
        assert one.random() == batch.random()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 5), st.integers(1, 6), st.integers(1, 6), st.integers(0, 2**32))
def test_a_batch_is_treated_image_by_image(count: int, height: int, width: int, seed: int) -> None:
    images = np.random.default_rng(seed).integers(0, 256, (count, 6, 6, 3), dtype=np.uint8)
    cut = fb.image.random_crop(images, (height, width), np.random.default_rng(seed))
    assert cut.shape == (count, height, width, 3)
    for image, each in zip(images, cut):
        views = np.lib.stride_tricks.sliding_window_view(image, (height, width), axis=(0, 1))
        assert (views.transpose(0, 1, 3, 4, 2) == each).all(axis=(2, 3, 4)).any()
    for image, each in zip(images, fb.image.random_flip_left_right(images, np.random.default_rng(seed))):
        assert np.array_equal(each, image) or np.array_equal(each, image[:, ::-1])
    for call in (
        lambda x: fb.image.pad(x, (9, 8), 7),
        lambda x: fb.image.center_crop(x, (height, width)),
        lambda x: fb.image.normalize(x, [1, 2, 3], [4, 5, 6]),
        fb.image.flip_left_right,
    ):
        for image, each in zip(images, call(images)):
            np.testing.assert_array_equal(each, call(image))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for animal, base in (("cat", 0), ("dog", 100)):
        (tmp_path / animal / "young").mkdir(parents=True)
        for i in range(3):
            pixels = np.full((20 + i, 30, 3), base + 10 * i, np.uint8)
            (tmp_path / animal / ("young" if i == 2 else ".") / f"{i}.JPG").write_bytes(encoded(pixels, "JPEG"))
    (tmp_path / "cat" / "notes.txt").write_text("not an image")
    return tmp_path


def test_folders_are_labels(folder: Path) -> None:
    found = [(image.shape, int(image[0, 0, 0]), int(label)) for image, label in fb.Dataset.from_images(folder)]
    assert found == [((20 + i, 30, 3), base + 10 * i, label) for label, base in enumerate((0, 100)) for i in range(3)]
    renumbered = fb.Dataset.from_images(str(folder), class_names=["dog", "cat"], as_dict=True, size=(4, 4))
    assert [(int(e["image"][0, 0, 0]), int(e["label"])) for e in renumbered][::3] == [(100, 0), (0, 1)]
    assert len(fb.Dataset.from_images(folder, class_names=["dog"])) == 3


def test_labels_by_a_function_and_none(folder: Path) -> None:
    labels = [label for _, label in fb.Dataset.from_images(folder, lambda path: Path(path).parent.name)]
    assert labels == ["cat", "cat", "young", "dog", "dog", "young"]
    assert [image.shape for image in fb.Dataset.from_images(folder, None, size=(4, 5), channels=1)] == [(4, 5, 1)] * 6


def test_shuffling_moves_paths(folder: Path) -> None:
    dataset = fb.Dataset.from_images(folder, size=(4, 4))
    plain = {(int(image[0, 0, 0]), int(label)) for image, label in dataset}
    shuffled = [(int(image[0, 0, 0]), int(label)) for image, label in dataset.shuffle(seed=1)]
    assert set(shuffled) == plain
    assert dataset.shuffle(seed=1).skip(4).cardinality() == 2
    first = [int(image[0, 0, 0]) for image, _ in fb.Dataset.from_images(folder, shuffle=True, seed=1)]
    assert first == [value for value, _ in shuffled]


@pytest.mark.parametrize("size", [None, (4, 4)])
def test_broken_files_are_named_or_left_out(
    folder: Path, size: tuple[int, int] | None, caplog: pytest.LogCaptureFixture
) -> None:
    bad = folder / "dog" / "0.JPG"
    bad.write_bytes(b"not an image")
    with pytest.raises(fb.FileError, match=r"element 3: .*not a JPEG") as caught:
        list(fb.Dataset.from_images(folder, size=size))
    assert caught.value.path == str(bad)
    with caplog.at_level(logging.WARNING, "forebay"):
        kept = list(fb.Dataset.from_images(folder, size=size, on_error="skip"))
    assert [int(image[0, 0, 0]) for image, _ in kept] == [0, 10, 20, 110, 120]
    assert str(bad) in caplog.text
    (folder / "cat" / "1.JPG").write_bytes(b"")
    with iter(fb.Dataset.from_images(folder, size=size, on_error="skip", max_errors=1)) as it:
        assert [int(next(it)[0][0, 0, 0]) for _ in range(2)] == [0, 20]
        with pytest.raises(fb.FileError, match="fault 2, and max_errors is 1"):
            next(it)


def test_files_that_went_missing_are_named(folder: Path) -> None:
    dataset = fb.Dataset.from_images(folder)
    (folder / "cat" / "0.JPG").unlink()
    with pytest.raises(fb.FileError, match="there is no such file"):
        list(dataset)


def test_images_at_a_url(folder: Path) -> None:
    import fsspec

    memory = fsspec.filesystem("memory")
    memory.pipe("/pets/a/1.jpg", jpeg(8, 9))
    memory.pipe("/pets/b/2.png", encoded(picture(5, 6), "PNG"))
    try:
        found = [(image.shape, int(label)) for image, label in fb.Dataset.from_images("memory://pets")]
        assert found == [((8, 9, 3), 0), ((5, 6, 3), 1)]
        assert fb.io.read_file("memory://pets/a/1.jpg") == jpeg(8, 9)
    finally:
        memory.rm("/pets", recursive=True)
    assert len(fb.Dataset.from_images(f"file://{folder}")) == 6


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"labels": "names"}, "labels must be"),
        ({"class_names": ["cow"]}, "no images in 'cow'"),
        ({"class_names": ["cat", "cat"]}, "given twice"),
        ({"labels": None, "class_names": ["cat"]}, "labels='folders' only"),
        ({"on_error": "ignore"}, "must be 'raise' or 'skip'"),
        ({"seed": 1}, "without shuffle=True"),
        ({"channels": 2}, "channels must be"),
        ({"dtype": np.float32}, "give size"),
        ({"size": (0, 1)}, "size must be"),
    ],
)
def test_folders_that_cannot_be_meant(folder: Path, how: dict[str, Any], text: str) -> None:
    with pytest.raises(fb.PlanError, match=text):
        fb.Dataset.from_images(folder, **how)


def test_folders_without_images(tmp_path: Path) -> None:
    with pytest.raises(fb.PlanError, match="no files that end with"):
        fb.Dataset.from_images(tmp_path)
    with pytest.raises(fb.FileError, match="there is no such folder"):
        fb.Dataset.from_images(tmp_path / "nowhere")
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(fb.PlanError, match="give labels=None"):
        fb.Dataset.from_images(tmp_path)


def test_read_file(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\0\xff")
    assert fb.io.read_file(tmp_path / "x") == b"\0\xff"
    with pytest.raises(fb.FileError, match="is a folder"):
        fb.io.read_file(str(tmp_path))
    paths = fb.Dataset.from_tensor_slices([str(tmp_path / "x"), str(tmp_path / "y")])
    with pytest.raises(fb.FileError, match=r"map at .*, element 1: .*no such file"):
        list(paths.map(fb.io.read_file))
