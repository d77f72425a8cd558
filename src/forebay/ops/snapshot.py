"""``snapshot``: rows that are written to disk the first time, and read from there from then on."""

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from forebay.block import START, Block, Cursor
from forebay.errors import CursorError, DataError, FunctionError, InternalError, PlanError
from forebay.lazy import cached_property
from forebay.plan.changes import KeptPlan
from forebay.plan.check import function
from forebay.plan.fingerprint import digest
from forebay.plan.identity import Contents, content_key, contents_of_plan
from forebay.plan.lower import build as build_plan
from forebay.plan.lower import prepare
from forebay.plan.made import file_stamp
from forebay.plan.node import INFINITE, UNKNOWN, Build, Node, Traits
from forebay.run import Operator, Reader, Setup, Site
from forebay.storage.damage import damage, is_own, is_remains
from forebay.storage.folder import sweep
from forebay.storage.manifest import MANIFEST, is_saved_dataset, read_manifest
from forebay.storage.writer import DatasetWriter, ShardOf

# A folder that is still being written, or was left by a crash, and the name that it would get.
_UNFINISHED = re.compile(r"\.([0-9a-f]{16})\.forebay-[0-9a-f]+")
# Older ones are not looked at for what may have changed since.
_MOST_OTHERS = 8
# Of the input, whatever the epoch of those who read: what is kept must not depend on which iteration got to its end.
_EPOCH = 0


class SnapshotFolder:
    """Where the snapshot of a plan as the user wrote it is. Its name is worked out when it is first asked for.

    That takes reading all data that the plan holds, which nobody is to wait for who only writes a plan down.
    """

    def __init__(self, path: str, origin: Node, compression: str | None, shard_func: Any) -> None:
        self.path = path
        self._origin = origin
        self._compression, self._shard_func = compression, shard_func
        self._told = False

    @cached_property
    def contents(self) -> Contents:
        """All that decides about the rows."""
        return contents_of_plan(self._origin)

    def sweep(self) -> None:
        """Remove what crashed processes have left of snapshots, also of plans that nobody will ever write again."""
        with suppress(OSError):
            for name in {match[1] for match in map(_UNFINISHED.fullmatch, os.listdir(self.path)) if match}:
                sweep(os.path.join(self.path, name))

    @cached_property
    def _how(self) -> dict[str, str]:
        """How they are written, which is another folder too."""
        return {"compression": str(self._compression), "shard_func": digest(self._shard_func, True)}

    @cached_property
    def name(self) -> str:
        """The folder in `path` that belongs to the plan, and to no other."""
        return os.path.join(self.path, content_key(self.contents, list(self._how.values()))[:16])

    def plan(self, site: Site) -> KeptPlan:
        """What to write down with the rows; says in the log, once, what has changed since others were written."""
        named = Site(f"snapshot({self.path!r})", site.label, site.where)
        plan = KeptPlan(str(named), self.contents, [], "The older one stays in the folder beside it", self._how)
        if not self._told:
            self._told = True
            kept = next(filter(plan.resembles, self._others()), None)
            if kept is not None:
                plan.replaces(kept)
        return plan

    def _others(self) -> Iterator[str | None]:
        """What the latest of the other snapshots there are made of, the last one first."""
        found = []
        with suppress(OSError):
            for entry in os.scandir(self.path):
                with suppress(OSError):
                    found.append((os.stat(os.path.join(entry.path, MANIFEST)).st_mtime_ns, entry.path))
        for _, folder in sorted(found, reverse=True)[:_MOST_OTHERS]:
            with suppress(DataError, PlanError):
                yield read_manifest(folder, "snapshot").made_of


@dataclass(frozen=True, eq=False, kw_only=True)
class Snapshot(Node):
    """``Dataset.snapshot``. The folder is named after the input's plan, so that another plan has another one.

    `load` makes the plan that reads it. The seed is what unseeded random steps of that plan derive theirs from.
    """

    place: SnapshotFolder = field(repr=False)
    compression: str | None
    shard_func: Callable[..., Any] | None
    reader_func: Callable[..., Any] | None
    shard_of: ShardOf | None = field(repr=False)
    load: Callable[[str], Node] = field(repr=False)
    seed: int | None = None

    kind = "snapshot"
    traits = Traits(makes_plans=True, random=True, stores=True)

    def __post_init__(self) -> None:
        for name in ("shard_func", "reader_func"):
            if getattr(self, name) is not None:
                function("snapshot", name, getattr(self, name))
        path = self.place.path
        if os.path.exists(path) and not os.path.isdir(path):
            raise PlanError(f"snapshot(path={path!r}): there is a file of that name; it must be a folder")

    def params(self) -> dict[str, Any]:
        """What decides the order of rows."""
        return {"shard_func": self.shard_func, "reader_func": self.reader_func}

    def settings(self) -> dict[str, Any]:
        """Where and how they are kept."""
        return {"path": self.place.path, "compression": self.compression}

    @property
    def folder(self) -> str:
        """Where they are kept."""
        return self.place.name

    def cardinality(self) -> int:
        """The input's, unless the user's reader decides."""
        return self.input.cardinality() if self.reader_func is None else UNKNOWN

    def spec(self, *inputs: Any) -> Any | None:
        """The input's."""
        return inputs[0]

    def lower(self, setup: Setup, build: Build) -> Operator:
        """Write and pass on, or read."""
        if self.seed is None:
            raise InternalError("snapshot() has no seed after resolve_seeds")
        return _Snapshot(self, build(self.input, setup), setup)


class _Snapshot(Operator):
    """State: the cursor of the input, or that of the plan that reads the snapshot together with the latter's id.

    A stream goes on as it began: one that was passed through is passed through after a resume, even if a snapshot
    has been completed since, which may hold rows in another order. Only a stream that runs from its first row to its
    last is written. One that is read and turns out to be damaged is written again as a whole before it goes on: so it
    does in whatever order shards and the user's reader make of the rows.
    """

    def __init__(self, node: Snapshot, source: Operator, setup: Setup) -> None:
        super().__init__(node.site, source)
        self._node = node
        self._setup = setup
        self._reader = Reader(source)
        self._stored: Operator | None = None
        self._id: str | None = None
        self._writer: DatasetWriter | None = None
        self._epoch = 0
        self._at = START
        self._opened: tuple[int, ...] = ()
        self._looked = False

    def seek(self, cursor: Cursor, epoch: int) -> int:
        """Rows of a snapshot are found by number, others as the input can."""
        self._give_up()
        self._epoch = epoch
        state = cursor.state
        wanted = state["id"] if state is not None else self._complete()
        inner = (START if state is None else Cursor.from_json(state["in"])).after(cursor.skip)
        if wanted is not None:
            self._open(wanted, inner)
            return 0
        self._id = None
        self._reader = Reader(self.inputs[0])
        self._reader.seek(inner, _EPOCH)
        if inner == START:
            self._writer = self._new_writer()
        return 0

    def _complete(self) -> str | None:
        """The id of the snapshot, if there is one; one that cannot be opened is none."""
        fault = self._damage()
        if fault is not None:
            self._tell(fault)
            return None
        return read_manifest(self._node.folder, "snapshot").id if is_saved_dataset(self._node.folder) else None

    def _damage(self, rows: bool = False) -> DataError | None:
        """What is wrong with the snapshot. DataError if it is, and something else would go with it."""
        folder = self._node.folder
        fault = damage(folder, rows)
        if fault is not None and not is_own(folder):
            raise DataError(
                f"{self.site}: {fault}. Other files are beside it: remove {folder}, and it is written again"
            ) from fault
        return fault

    def _open(self, wanted: str, at: Cursor, fault: DataError | None = None) -> None:
        """Read from there on, in a snapshot that is written again if it is at fault."""
        fault = fault or self._damage()
        if fault is not None:
            self._write_again(fault)
        found = self._complete()
        if found != wanted:
            if fault is not None:
                raise DataError(
                    f"{self.site}: {fault}. It has been written again, with other rows, as steps before it do not "
                    "always give the same: start the iteration again"
                ) from fault
            what = "is gone" if found is None else "was written again since"
            raise CursorError(f"{self.site}: the snapshot in {self._node.folder} that the state refers to {what}")
        assert self._node.seed is not None
        self._opened = self._stamp()
        plan = prepare(self._node.load(self._node.folder), self._node.seed, self._setup.rules)
        self._stored = build_plan(plan, self._setup)
        self._id = wanted
        self._reader = Reader(self._stored)
        self._reader.seek(at, self._epoch)
        self._at = at

    def _stamp(self) -> tuple[int, ...]:
        return file_stamp(os.path.join(self._node.folder, MANIFEST))

    def _write_again(self, fault: DataError) -> None:
        # Whatever becomes of this iteration, the next one finds nothing to read.
        with suppress(OSError):
            os.unlink(os.path.join(self._node.folder, MANIFEST))
        source = self.inputs[0]
        if source.free:
            raise DataError(
                f"{self.site}: {fault}. Rows come in any order before it, so that this iteration cannot go on: the "
                "next one writes the snapshot again"
            ) from fault
        self._tell(fault)
        reader = Reader(source)
        reader.seek(START, _EPOCH)
        self._writer = self._new_writer()
        while self._writer is not None and (block := reader.next()) is not None:
            self._writer.add(block)
        self._finish()

    def _tell(self, fault: DataError) -> None:
        # Those who have nothing to log need not wait for it.
        import logging

        logging.getLogger("forebay").warning("%s: %s. The snapshot is written again", self.site, fault)

    def _new_writer(self) -> DatasetWriter | None:
        node = self._node
        node.place.sweep()
        try:
            return DatasetWriter(
                node.folder,
                "snapshot",
                compression=node.compression,
                shard_of=node.shard_of,
                plan=os.path.basename(node.folder),
                made_of=node.place.plan(node.site).text(),
                overwrite=False,
                replaces=is_remains,
                ledger=self._setup.ledger,
            )
        except PlanError:
            # Another process has completed one just now; this stream began without it.
            if is_saved_dataset(node.folder):
                return None
            raise

    def pull(self) -> Block | None:
        """Pass rows on, with a copy to the disk."""
        block = self._next()
        if block is None:
            self._finish()
            return None
        self._at = block.cursor.after(block.rows)
        if self._writer is not None:
            self._writer.add(block)
            # The writer may keep rows for a while, and what it keeps must not be written into.
            block = Block(block.structure, [column.shared() for column in block.columns], block.rows, block.cursor)
        return block.at(Cursor({"id": self._id, "in": block.cursor.to_json()}))

    def _next(self) -> Block | None:
        try:
            return self._reader.next()
        except (DataError, FunctionError):
            # A function of the user's reader may be what has read the rows.
            if not self._mended():
                raise
        return self._reader.next()

    def _mended(self) -> bool:
        """Whether it was damage that has ended the stream, which now goes on in a snapshot that is whole."""
        if self._id is None or self._looked:
            return False
        # Once: it takes reading all of it, and a disk that fails does so again.
        self._looked = True
        fault = self._damage(rows=True)
        # Without a fault, another one may have written it again since, but somebody may also have removed it.
        if fault is None and self._stamp() in (self._opened, ()):
            return False
        wanted, at = self._id, self._at
        self._give_up()
        self._open(wanted, at, fault)
        return True

    def _finish(self) -> None:
        writer, self._writer = self._writer, None
        if writer is None:
            return
        try:
            writer.finish()
        except PlanError:
            # Of several that write the same, the first one stays.
            if not is_saved_dataset(self._node.folder):
                raise
        finally:
            writer.close()

    def _give_up(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
        stored, self._stored = self._stored, None
        if stored is not None:
            stored.close()

    def close(self) -> None:
        """What was not written to the end is not kept."""
        self._give_up()
        super().close()


def check_input(node: Node) -> None:
    """PlanError if there is no end to what would be written."""
    if node.cardinality() == INFINITE:
        raise PlanError("snapshot(): the dataset is infinite, so that a snapshot of it would never be complete")
