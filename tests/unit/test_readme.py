"""The README's programs run as they stand, each in a process of its own."""

import re
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest

import forebay as fb
from forebay.dataset.face import NOT_YET
from unit.support import python

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()

DATA = """
import os
os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu")
import json
import numpy as np
import forebay as fb

images = np.random.default_rng(1).integers(0, 256, (256, 12)).astype(np.float32)
labels = np.arange(256) % 2
seen = []

def train_step(image, label):
    assert len(image) == len(label) == 64
    seen.append([int(x) for x in label])
"""


def program(heading: str, number: int) -> str:
    """The Python block with that number below a heading."""
    section = README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)[number]


def on_these_arrays(code: str) -> str:
    """Without the lines that load files."""
    return re.sub(r"^(images|labels) = np.load.*$", "", code, flags=re.MULTILINE)


TEN_LINES = DATA + on_these_arrays(program("Ten lines", 0))


def test_stopping_and_going_on_gives_the_uninterrupted_run(tmp_path: Path) -> None:
    whole = python(TEN_LINES + "print(seen)")
    stop = program("Ten lines", 1).replace("position.json", str(tmp_path / "position.json"))
    first, again, second = stop.partition("\n\nit = iter(ds)  #")
    started = TEN_LINES.partition("for epoch in range(3)")[0]
    head = "for _, batch in zip(range(3), it): train_step(batch['image'], batch['label'])"
    before = python(started + "list(ds)\nepoch = 1\n" + first.replace("...", head) + "\nprint(seen)")
    after = python(started + again + second + "\nprint(seen)")
    assert eval(before) == eval(whole)[4:7]
    assert eval(after) == eval(whole)[7:]


FRAMEWORKS = {
    "torch": (
        0,
        "import torch\nmodel = torch.nn.Linear(12, 2)\nloss_of = torch.nn.functional.cross_entropy\n",
        "assert float(loss.detach()) > 0",
    ),
    "jax": (1, "import jax\nweights = np.ones((12, 1), np.float32)\n", ""),
    "keras": (
        2,
        "import keras\nmodel = keras.Sequential([keras.layers.Dense(1, activation='sigmoid')])\n"
        "model.compile('sgd', 'binary_crossentropy')\nval_images, val_labels = images[:100], labels[:100]\n"
        "import warnings\nwarnings.simplefilter('error')\n",
        "assert len(model.history.epoch) == len(model.history.history['val_loss']) == 3",
    ),
}


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_frameworks_take_what_comes_out(framework: str) -> None:
    if find_spec(framework) is None:
        pytest.skip(f"{framework} is not installed")
    number, before, after = FRAMEWORKS[framework]
    code = program("With PyTorch, JAX, Keras", number)
    python(TEN_LINES + before + code + after, 300)


def test_the_workers_of_a_loader_share_the_rows_of_an_epoch() -> None:
    if find_spec("torch") is None:
        pytest.skip("torch is not installed")
    code = program("With PyTorch, JAX, Keras", 3).replace('train_step(batch["image"], batch["label"])', "note(batch)")
    note = "import torch\nlabels = np.arange(256)\ndef note(batch): seen.append(batch['label'].tolist())\n"
    batches = eval(python(DATA + note + code + "print(seen)", 300))
    assert len(batches) == 12
    epochs = [list(chain.from_iterable(batches[start : start + 4])) for start in (0, 4, 8)]
    assert all(sorted(epoch) == list(range(256)) for epoch in epochs)
    assert len({tuple(epoch) for epoch in epochs}) == 3


def test_the_parallel_ways_are_ways() -> None:
    code = re.sub(r"^(ds\..*?)(  #.*)?$", r"print(len(list(\1)))", program("In parallel", 0), flags=re.MULTILINE)
    code = code.replace("range(1000)", "range(40)")
    assert python(f"{DATA}\ndef decode(x): return x * 2\n{code}").split() == ["40", "40", "40", "780", "40"]


def test_the_example_in_bounded_memory_reports_what_it_holds() -> None:
    told = python(f"{DATA}\ndef decode(x): return x.astype(np.float64)\n{program('In bounded memory', 0)}")
    for text in ("budget 512 MiB", "cache()", "shuffle(buffer_size=10000", "all steps", "UNCLEAR"):
        assert text in told


FILES = """
import cv2
import pyarrow as pa
import pyarrow.parquet as pq

rng = np.random.default_rng(1)
pictures = [cv2.imencode(".jpg", rng.integers(0, 256, (60, 80, 3), np.uint8))[1].tobytes() for _ in range(4)]
for shard in range(2):
    with fb.io.TFRecordWriter(f"train-{shard}.tfrecord") as writer:
        for label in range(2):
            example = {"image": pictures[2 * shard + label], "label": np.int64(2 * shard + label)}
            writer.write(fb.io.serialize_example(example))
pq.write_table(pa.table({"x": np.arange(300), "y": np.arange(300) * 2, "z": np.zeros(300)}), "rows.parquet")
for name in "ab":
    os.makedirs(f"photos/{name}")
    open(f"photos/{name}/one.jpg", "wb").write(pictures[0])
"""


def test_files(tmp_path: Path) -> None:
    pytest.importorskip("cv2")
    pytest.importorskip("simplejpeg")
    records, rest = program("From files", 0).split("\n\n")
    rows, photos = rest.splitlines()
    code = f"{DATA}os.chdir({str(tmp_path)!r})\n{FILES}{records}\n"
    code += "print([(image.shape, int(label)) for image, label in ds])\n"
    code += f"{rows}\nprint(sorted(int(x) for batch in ds for x in batch['y']) == list(range(0, 600, 2)))\n"
    code += f"{photos}\nprint([(image.shape, sorted(map(int, label))) for image, label in ds])\n"
    # Records of two files by turns.
    assert python(code).splitlines() == [
        str([((224, 224, 3), label) for label in (0, 2, 1, 3)]),
        "True",
        str([((2, 224, 224, 3), [0, 1])]),
    ]


RECORDS = """
for shard in range(4):
    with fb.io.TFRecordWriter(f"train-{shard}.tfrecord") as writer:
        for label in range(shard, 130, 4):
            writer.write(fb.io.serialize_example({"image": bytes([label]) * 32 * 32 * 3, "label": label}))
"""


def test_a_pipeline_from_tf_data(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "from_tf_data.md").read_text()
    code = f"{DATA}os.chdir({str(tmp_path)!r})\n{RECORDS}" + page.partition("```python\n")[2].partition("```")[0]
    code += "assert image.shape == (64, 32, 32, 3) and (image[:, 0, 0, 0] == label).all()\n"
    labels = list(chain.from_iterable(eval(python(code + "print(seen)"))))
    assert len(labels) == len(set(labels)) == 128


def test_what_is_not_there_yet_is_said_of_datasets_and_of_their_class() -> None:
    told = README.partition("\nNot there yet: ")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", told)) == NOT_YET.keys()
    for name in NOT_YET:
        for owner in (fb.Dataset, fb.Dataset.range(3), fb.TFRecordDataset):
            with pytest.raises(AttributeError, match=rf"Dataset\.{name} of tf\.data is not there yet"):
                getattr(owner, name)
    with pytest.raises(AttributeError, match="type object 'Dataset' has no attribute 'rnge'"):
        fb.Dataset.rnge  # type: ignore[attr-defined]  # noqa: B018
