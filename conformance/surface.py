"""The public names of Equinox 0.13.8 as data, and what of them a library has.

``surface.json`` is the data: for each name its kind, the parameters of its call (names, kinds,
defaults; no annotations, whose text differs between versions), for a Module its fields in
their order (that of the leaves, hence of a file) with those that are static, for a class its public
methods, for an error the classes of Python that it can be caught as.

``python -m conformance.surface`` writes it down anew from the Equinox that is installed.
"""

import dataclasses
import importlib
import inspect
import json
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

DATA = Path(__file__).with_name("surface.json")
NAMESPACES = ("", "nn", "debug", "internal")

# What the package holds that is no promise of its own.
_LEAKED = {"importlib"}
_OURS = {"install", "uninstall"}
_CALLS = ("__call__", "__getitem__", "__len__", "__iter__")
_PLAIN = (type(None), bool, int, float, str, tuple)

# Names whose surface differs, which is meant, and why.
ON_PURPOSE: dict[str, str] = {
    "filter_custom_jvp": "its method `defjvps` takes the rules, and has no further argument",
    "internal.ContainerMeta": "an argument that only Python's class statement passes",
    "internal.Static": "how it holds its value is private, and one field",
    "internal.TextProgressMeter": "its settings are static: no transform is to trace or train them",
    "internal.TqdmProgressMeter": "its settings are static: no transform is to trace or train them",
    "internal.TreeWLCustom": "no dataclass; its attributes are the same",
}


def read() -> dict[str, Any]:
    """The data, by qualified name (`nn.Linear`)."""
    return json.loads(DATA.read_text(encoding="utf-8"))


def describe(package: types.ModuleType) -> dict[str, Any]:
    """What a package has, in the form of the data.

    Args:
        package: `equinox`, or what stands in for it.
    """
    return {name: describe_value(value) for name, value in _values(package)}


def _values(package: types.ModuleType) -> Iterator[tuple[str, Any]]:
    for space in NAMESPACES:
        name = f"{package.__name__}.{space}" if space else package.__name__
        module = importlib.import_module(name)
        for public in sorted(set(vars(module)) - _LEAKED - _OURS):
            if public.startswith("_"):
                continue
            value = getattr(module, public)
            if isinstance(value, types.ModuleType) and public not in NAMESPACES:
                continue
            yield f"{space}.{public}".lstrip("."), value


def describe_value(value: Any) -> dict[str, Any]:
    """One name's entry."""
    if isinstance(value, types.ModuleType):
        return {"kind": "module"}
    if inspect.isclass(value):
        return _describe_class(value)
    if callable(value):
        return {"kind": "function", "call": parameters(value)}
    return {"kind": type(value).__name__}


def _describe_class(cls: type) -> dict[str, Any]:
    if issubclass(cls, BaseException):
        caught = [base.__name__ for base in cls.__mro__ if base.__module__ == "builtins"]
        return {"kind": "error", "caught as": [n for n in caught if n != "object"][-3:]}
    entry: dict[str, Any] = {"kind": "class", "call": parameters(cls), "methods": _methods(cls)}
    if dataclasses.is_dataclass(cls):
        entry["fields"] = [
            field.name + ("*" if field.metadata.get("static", False) else "")
            for field in dataclasses.fields(cls)
        ]
    return entry


def _methods(cls: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in sorted(dir(cls)):
        if name.startswith("_") and name not in _CALLS:
            continue
        static = inspect.getattr_static(cls, name)
        if isinstance(static, property):
            found[name] = "property"
        elif isinstance(static, staticmethod | classmethod):
            found[name] = [type(static).__name__, *(parameters(getattr(cls, name)) or ())]
        elif callable(getattr(cls, name)):
            found[name] = parameters(getattr(cls, name))
    return found


def parameters(value: Any) -> list[str] | None:
    """The parameters of a call as text: `x`, `*`, `key=None`, `**kwargs`; None if unknown."""
    signature = bare_signature(value, _default)
    return None if signature is None else _split(str(signature)[1:-1])


def bare_signature(value: Any, default: Callable[[Any], Any]) -> inspect.Signature | None:
    """How something is called, without annotations; None if unknown.

    Args:
        value: what is called.
        default: a function from a default (`inspect.Parameter.empty` if there is none) to what is
            shown in its place: itself, or a `Shown`.
    """
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    bare = [
        p.replace(annotation=p.empty, default=default(p.default))
        for p in signature.parameters.values()
    ]
    return signature.replace(parameters=bare, return_annotation=signature.empty)


def _split(text: str) -> list[str]:
    """Splits at the commas that stand outside of brackets."""
    return [part for part in re.split(r",\s*(?![^()\[\]]*[)\]])", text) if part]


class Shown:
    """What is shown in the place of a default: three dots if it has no text of its own."""

    def __init__(self, text: str = "..."):
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _default(value: Any) -> Any:
    plain = value is inspect.Parameter.empty or type(value) in _PLAIN
    return value if plain else Shown()


def differences(expected: dict[str, Any], found: dict[str, Any]) -> dict[str, str]:
    """What a library lacks or has otherwise, by name.

    What is there in addition breaks no program, and is no difference: a name, a method, a parameter
    that has a default and comes last or by keyword.

    Args:
        expected: the data.
        found: `describe` of the library.

    Returns:
        A sentence for each name that differs. Empty, if everything is as it is expected.
    """
    result = {}
    for name, entry in expected.items():
        if name not in found:
            result[name] = "is missing"
        elif problems := list(_compare(entry, found[name])):
            result[name] = "; ".join(problems)
    return result


def _compare(expected: dict[str, Any], found: dict[str, Any]) -> Iterator[str]:
    kinds = expected["kind"], found["kind"]
    # Whether something that is called is a class is nobody's business, unless it has methods.
    if kinds[0] != kinds[1] and not (kinds == ("function", "class") and expected["call"]):
        yield f"is a {kinds[1]}, not a {kinds[0]}"
        return
    if expected.get("caught as") != found.get("caught as"):
        yield f"is caught as {found.get('caught as')}, not {expected.get('caught as')}"
    if "call" in expected and not accepts(found["call"], expected["call"]):
        yield f"takes {found['call']}, not {expected['call']}"
    if not _same_leaves(expected.get("fields"), found.get("fields")):
        yield f"has the fields {found.get('fields')}, not {expected['fields']}"
    for name, method in expected.get("methods", {}).items():
        ours = found.get("methods", {}).get(name, "nothing")
        if not accepts(ours, method):
            yield f"its {name} is {ours}, not {method}"


def _same_leaves(expected: list[str] | None, found: list[str] | None) -> bool:
    """Whether the fields are those that are expected, in order, and more that hold no leaves."""
    if not expected:
        return True
    if found is None:
        return False
    more = found[len(expected) :]
    return found[: len(expected)] == expected and all(name.endswith("*") for name in more)


def accepts(ours: Any, expected: Any) -> bool:
    """Whether every call that the expected parameters allow is allowed, and means the same."""
    if ours == expected or expected is None:
        return True
    if not (isinstance(ours, list) and isinstance(expected, list)):
        return False
    places, keywords = _halves(ours)
    wanted, wanted_keywords = _halves(expected)
    rest = places[len(wanted) :]
    in_place = all(map(_fits, places, wanted)) and len(places) >= len(wanted)
    swallowed = "*args" in places and all(map(_fits, places[: places.index("*args")], wanted))
    by_keyword = [
        any(_fits(mine, theirs) for mine in [*keywords, *rest]) for theirs in wanted_keywords
    ]
    optional = all("=" in part or part.startswith("*") for part in rest)
    return (swallowed or (in_place and optional)) and all(by_keyword)


def _fits(ours: str, expected: str) -> bool:
    """The same parameter, or one that may be left out in addition."""
    if ours[:1] == "*" == expected[:1]:
        return ours.count("*", 0, 2) == expected.count("*", 0, 2)
    (name, _, default), (wanted, _, theirs) = ours.partition("="), expected.partition("=")
    return name == wanted and (default == theirs or theirs in ("", "..."))


def _halves(parts: list[str]) -> tuple[list[str], list[str]]:
    """Parameters before and after `*` or `*args`, which belongs to the first half."""
    parts = [part for part in parts if part != "/"]
    for i, part in enumerate(parts):
        if part.startswith("*") and not part.startswith("**"):
            return parts[:i] + ([part] if part != "*" else []), parts[i + 1 :]
    keywords = [part for part in parts if part.startswith("**")]
    return [part for part in parts if part not in keywords], keywords


def stale(data: dict[str, Any], equinox: types.ModuleType) -> dict[str, str]:
    """Where the data is not what Equinox has, by name.

    Args:
        data: what is written down.
        equinox: the real package.
    """
    now = json.loads(json.dumps(describe(equinox)))
    return {
        name: f"is {now.get(name)} there, and {data.get(name)} in the data"
        for name in sorted({*data, *now})
        if data.get(name) != now.get(name)
    }


def main() -> None:
    """Writes the data down anew."""
    import equinox  # noqa: PLC0415  (optional)

    text = json.dumps(describe(equinox), indent=1, ensure_ascii=False)
    DATA.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
