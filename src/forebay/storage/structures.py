"""Element structures as JSON, and names for their leaves that read well as columns."""

import importlib
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from forebay.block import LEAF, Structure
from forebay.errors import PlanError

_KEYS = (str, int, float, bool, type(None))


def structure_to_json(structure: Structure) -> Any:
    """A JSON value that ``structure_from_json`` reads back. PlanError for classes that no other process can find."""
    if structure.is_leaf:
        return None
    children = [structure_to_json(child) for child in structure.children]
    if structure.kind is dict:
        for key in structure.keys:
            if type(key) not in _KEYS:
                raise PlanError(
                    f"elements are dicts with the key {key!r}: only str, numbers, bool and None can be saved"
                )
        return {"kind": "dict", "keys": list(structure.keys), "children": children}
    if structure.kind is tuple:
        return {"kind": "tuple", "children": children}
    assert structure.kind is not None
    module, name = structure.kind.__module__, structure.kind.__qualname__
    if "<locals>" in name:
        raise PlanError(
            f"elements are of the class {name}, which is defined inside a function, so that nobody could load them: "
            "define it at the top of a module, or map elements to tuples or dicts before"
        )
    return {"kind": f"{module}:{name}", "keys": list(structure.keys), "children": children}


def structure_from_json(value: Any) -> Structure:
    """The structure that ``structure_to_json`` wrote. PlanError if a class of it cannot be found."""
    if value is None:
        return LEAF
    kind, children = value["kind"], tuple(structure_from_json(child) for child in value["children"])
    if kind == "dict":
        return Structure(dict, tuple(value["keys"]), children)
    if kind == "tuple":
        return Structure(tuple, (), children)
    return Structure(_class(kind, tuple(value["keys"])), tuple(value["keys"]), children)


def _class(path: str, keys: tuple[str, ...]) -> type[Any]:
    module, _, name = path.partition(":")
    hint = "import or define it first, or give element_spec with a class of the same fields"
    try:
        found: Any = sys.modules.get(module) or importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise PlanError(
            f"elements are of the class {name} of {module}, which cannot be found ({error}): {hint}"
        ) from error
    have: tuple[str, ...] | None = None
    if isinstance(found, type):
        have = tuple(f.name for f in fields(found)) if is_dataclass(found) else getattr(found, "_fields", None)
    if have != keys:
        raise PlanError(f"elements are of the class {name} of {module}, which has no longer the fields {keys}: {hint}")
    return found  # type: ignore[no-any-return]


def column_names(structure: Structure) -> list[str]:
    """A name for each leaf: ``image``, ``0``, ``a.b``; ``value`` for a lone one. No two are the same."""
    names: list[str] = []
    for path in _paths(structure, ()):
        base = ".".join(path) or "value"
        name, again = base, 1
        while name in names:
            again += 1
            name = f"{base}_{again}"
        names.append(name)
    return names


def written_names(call: str, structure: Structure) -> list[str]:
    """The same, for columns of a file. PlanError if one of them cannot be written."""
    names = column_names(structure)
    for name in names:
        try:
            name.encode()
        except UnicodeEncodeError:
            raise PlanError(f"{call}(): the key {name!r} is no text that can be written: use another one") from None
    return names


def _paths(structure: Structure, before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if structure.is_leaf:
        yield before
    for key, child in zip(structure.keys or range(len(structure.children)), structure.children):
        yield from _paths(child, (*before, str(key)))
