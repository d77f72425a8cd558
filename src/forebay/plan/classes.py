"""What a class of the user's own does, for digests in which contents count."""

import enum
import types
from collections.abc import Iterator, Mapping
from typing import Any

from forebay.plan.made import is_users
from forebay.plan.standard import is_field

# What Python itself notes of a class, and what it remembers about its subclasses.
_NOTES = frozenset(
    {
        "__abstractmethods__",
        "__annotate__",
        "__annotate_func__",
        "__annotations__",
        "__annotations_cache__",
        "__classcell__",
        "__dict__",
        "__doc__",
        "__firstlineno__",
        "__module__",
        "__orig_bases__",
        "__parameters__",
        "__qualname__",
        "__signature__",
        "__slots__",
        "__static_attributes__",
        "__type_params__",
        "__weakref__",
        "_abc_impl",
    }
)
_PLAIN = (bool, int, float, str, bytes, tuple)


def behaviour(kind: type) -> Iterator[Any]:
    """Methods and attributes of a class, and of those that it inherits from, as far as they are the user's."""
    if is_users(type(kind).__module__):
        yield type(kind)
    for base in kind.__mro__:
        if is_users(base.__module__):
            yield from _attributes(base)


def _attributes(base: type) -> Iterator[Any]:
    members: Mapping[str, Any] = base.__members__ if isinstance(base, enum.EnumMeta) else {}
    for name, each in sorted(vars(base).items()):
        if name in members or name in _NOTES:
            continue
        if isinstance(each, (types.MemberDescriptorType, types.GetSetDescriptorType)) or is_field(each):
            continue
        if name == "__dataclass_fields__":
            # The rest of them is in the methods that were made of them.
            yield tuple((field.name, field.metadata) for field in each.values())
        elif not _is_bookkeeping(name, each, base):
            yield (name, each)
    for name, member in members.items():
        # One that Python has combined from others while the program ran is no attribute of the class.
        yield name
        yield sorted((key, of) for key, of in vars(member).items() if key not in ("__objclass__", "_sort_order_"))


def _is_bookkeeping(name: str, each: Any, base: type) -> bool:
    """What libraries note of a class under names with underscores, such as what they have looked up before."""
    if isinstance(each, (types.FunctionType, staticmethod, classmethod)):
        return False
    if isinstance(base, enum.EnumMeta) and name.startswith("_") and name.endswith("_"):
        return True
    special = name.startswith("__") and name.endswith("__")
    return special and not (callable(each) or hasattr(type(each), "__get__") or type(each) in _PLAIN)
