"""What a container is called: a variable, an attribute, or an item of a dictionary that has a name."""

import gc
import sys
from inspect import CO_OPTIMIZED
from types import FrameType, ModuleType
from typing import Any, NamedTuple

from forebay.observe.census import module_of, type_name

# From a container up to what has a name, through dictionaries: history["loss"].
_UP = 2
# References to the copy of a frame's variables: the frame's, ours, and the count itself.
_OURS = 3


class _Place(NamedTuple):
    """A name, and what tells where it is one."""

    name: str
    where: str = ""


# Of what imports leave behind, however late they come.
_IMPORTED = _Place("")


class Names:
    """Those of modules and of functions that run, as they are now."""

    def __init__(self) -> None:
        self._modules = {
            id(vars(module)): name
            for name, module in reversed(sys.modules.copy().items())
            if isinstance(module, ModuleType)
        }
        self._variables = _variables()

    def of(self, container: Any) -> str | None:
        """What it is called; None for what imports leave behind."""
        kind = type(container).__name__
        place = self._place(container, _UP)
        if place is _IMPORTED:
            return None
        if place is not None:
            return f"{kind} {place.name}{place.where}"
        some = next(iter(container), None)
        return f"a {kind} of {type_name(type(some))}"

    def _place(self, value: Any, up: int) -> _Place | None:
        inside: list[tuple[dict[Any, Any], Any]] = []
        for owner in gc.get_referrers(value):
            owners = [owner]
            if isinstance(owner, dict):
                key = _key(owner, value)
                if isinstance(key, str) and id(owner) in self._modules:
                    return _IMPORTED if key.startswith("__") else _Place(f"{self._modules[id(owner)]}.{key}")
                # The attributes of an object, once anybody has asked for them as a dictionary.
                objects = gc.get_referrers(owner) if isinstance(key, str) else []
                owners = [each for each in objects if _attributes(each) is owner]
                if not owners and isinstance(key, (str, int)):
                    inside.append((owner, key))
            for each in owners:
                key = _key(_attributes(each) or {}, value)
                if key is not None:
                    imported = module_of(type(each)).startswith("_frozen_importlib")
                    return _IMPORTED if imported else _Place(f"{type(each).__name__}.{key}")
        if id(value) in self._variables:
            return self._variables[id(value)]
        for mapping, key in inside if up else ():
            place = self._place(mapping, up - 1)
            if place:
                return _Place(f"{place.name}[{key!r}]", place.where)
        return None


def _variables() -> dict[int, _Place]:
    """Of the functions that have called this one: the user's loop, if this is its thread. By what they refer to."""
    found: dict[int, _Place] = {}
    # Who traces a function writes back what was shown of its variables: nothing may be taken out of that meanwhile.
    if sys.gettrace() is not None or sys.getprofile() is not None:
        return found
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_flags & CO_OPTIMIZED and frame.f_locals is not frame.f_globals:
            # Of a class, or run by exec() or eval(), whose variables may be this copy of those of a function above: to
            # ask for these again would undo what has been assigned to them.
            break
        if code.co_flags & CO_OPTIMIZED and not str(frame.f_globals.get("__name__")).startswith("forebay."):
            variables = frame.f_locals
            where = f" in {code.co_qualname.rpartition('<locals>.')[2]}()"
            for name, value in variables.items():
                found.setdefault(id(value), _Place(name, where))
            if isinstance(variables, dict) and sys.getrefcount(variables) <= _OURS:
                # A copy, which the frame would keep, and with it all that is in it, for as long as it runs. The user
                # has it too after a call of locals(); what exec() has left in it besides is nowhere else.
                for name in (*code.co_varnames, *code.co_cellvars, *code.co_freevars):
                    variables.pop(name, None)
        frame = frame.f_back
    return found


def _key(mapping: dict[Any, Any], value: Any) -> Any:
    return next((key for key, each in list(mapping.items()) if each is value), None)


def _attributes(owner: Any) -> dict[str, Any] | None:
    if not type(owner).__dictoffset__ or isinstance(owner, (type, ModuleType)):
        return None
    # Past whatever the class may do when it is asked for an attribute.
    found = object.__getattribute__(owner, "__dict__")
    return found if isinstance(found, dict) else None
