"""How the leaves of a file differ from those of a skeleton."""

import dataclasses
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from ecliptic.errors import MismatchError
from ecliptic.serialise._describe import describe_function
from ecliptic.serialise._encoding import Form, form_of_leaf

_SHOWN = 20
# Names are compared each with each in a group of one form, up to this many pairs.
_COMPARED = 10_000


class Difference(NamedTuple):
    """A leaf that is another one in the file than in the skeleton.

    Args:
        path: its path in the skeleton.
        saved: what it is in the file, for instance `float32[2, 3]`.
        like: what it is in the skeleton.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "tree.safetensors"
        >>> _ = ec.save(path, {"a": jnp.ones(2)})
        >>> _, report = ec.load(path, {"a": jnp.ones(3)}, strict=False)
        >>> report.reshaped[0].saved, report.reshaped[0].like
        ('float32[2]', 'float32[3]')
    """

    path: str
    saved: str
    like: str

    def __str__(self) -> str:
        return f"{self.path or _ROOT}: {self.saved} in the file, {self.like} in `like`"


class Renaming(NamedTuple):
    """A leaf that is missing, and one that is extra, of the same shape and dtype.

    Args:
        saved: the name in the file.
        path: the path in the skeleton.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "tree.safetensors"
        >>> _ = ec.save(path, {"a": jnp.ones(2)})
        >>> _, report = ec.load(path, {"b": jnp.ones(2)}, strict=False)
        >>> report.renamed[0].saved, report.renamed[0].path
        ("['a']", "['b']")
    """

    saved: str
    path: str

    def __str__(self) -> str:
        return f"{self.saved or _ROOT} in the file, {self.path or _ROOT} in `like`"


_ROOT = "(the whole tree)"


@dataclasses.dataclass(frozen=True)
class LoadReport:
    """What `load` and `from_state_dict` found, by path.

    Attributes:
        loaded: the leaves that came from the file.
        missing: leaves of the skeleton that the file does not have.
        extra: leaves of the file that the skeleton does not have.
        renamed: pairs of an extra and a missing leaf, of the same shape and dtype: a guess.
        reshaped: leaves of another shape.
        retyped: leaves of another dtype or Python type.
        notes: what differs without harm to any leaf: functions and static fields.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax.numpy as jnp
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "tree.safetensors"
        >>> _ = ec.save(path, {"a": jnp.ones(2)})
        >>> _, report = ec.load(path, {"a": jnp.ones(2), "b": jnp.ones(3)}, strict=False)
        >>> len(report.loaded), len(report.missing)
        (1, 1)
    """

    loaded: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    renamed: tuple[Renaming, ...] = ()
    reshaped: tuple[Difference, ...] = ()
    retyped: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether the file and the skeleton have the same leaves."""
        return not (self.missing or self.extra or self.reshaped or self.retyped)

    def __str__(self) -> str:
        guessed = {name for pair in self.renamed for name in pair}
        missing = [path or _ROOT for path in self.missing if path not in guessed]
        extra = [path or _ROOT for path in self.extra if path not in guessed]
        groups = [
            ("look renamed, for they have the same shape and dtype", self.renamed),
            ("missing in the file", missing),
            ("extra in the file", extra),
            ("of another shape", self.reshaped),
            ("of another type", self.retyped),
            ("only to note", self.notes),
        ]
        return "\n".join(line for title, found in groups if found for line in _lines(title, found))


def _lines(title: str, found: "tuple[object, ...] | list[str]") -> list[str]:
    lines = [f"  {title} ({len(found)}):", *(f"    {item}" for item in found[:_SHOWN])]
    return lines if len(found) <= _SHOWN else [*lines, f"    … and {len(found) - _SHOWN} more"]


def wanted_forms(places: dict[str, Any], saved: Collection[str]) -> dict[str, Form]:
    """The forms of the leaves of a skeleton that a checkpoint can hold, or that this one has."""
    forms = {}
    for path, leaf in places.items():
        form = form_of_leaf(leaf)
        if form is not None or path in saved:
            forms[path] = form or Form(describe_function(leaf))
    return forms


def compare(
    saved: Mapping[str, Form],
    like: Mapping[str, Form],
    *,
    name: Callable[[str], str],
    ignore_extra: bool,
    notes: tuple[str, ...] = (),
) -> LoadReport:
    """Compare the leaves of a file with those of a skeleton.

    Args:
        saved: the forms in the file, by path in the skeleton (that is, after renaming).
        like: the forms in the skeleton.
        name: from such a path to the name in the file.
        ignore_extra: whether more leaves in the file are no difference.
        notes: what else there is to say.
    """
    loaded, reshaped, retyped = [], [], []
    for path in like.keys() & saved.keys() if len(like) > len(saved) else like:
        if path not in saved:
            continue
        if like[path] == saved[path]:
            loaded.append(path)
        else:
            group = reshaped if like[path].type == saved[path].type else retyped
            group.append(Difference(path, str(saved[path]), str(like[path])))
    missing = [path for path in like if path not in saved]
    extra = [path for path in saved if path not in like and not ignore_extra]
    return LoadReport(
        loaded=tuple(loaded),
        missing=tuple(missing),
        extra=tuple(name(path) for path in extra),
        renamed=tuple(Renaming(name(a), b) for a, b in _guess(saved, like, extra, missing)),
        reshaped=tuple(reshaped),
        retyped=tuple(retyped),
        notes=notes,
    )


def mismatch(where: str, report: LoadReport) -> MismatchError:
    """The error for a report that is not complete."""
    hint = ""
    if report.renamed:
        pairs = ", ".join(f"{a!r}: {b!r}" for a, b in report.renamed[:3])
        more = ", …" if len(report.renamed) > 3 else ""
        hint = f" If leaves were renamed, pass `rename={{{pairs}{more}}}`."
    error = MismatchError(
        f"The leaves {where} are not those of `like`.\n{report}\nBuild `like` as the tree was "
        f"built that was saved, or load what fits with `strict=False`.{hint}"
    )
    error.report = report
    return error


def _guess(
    saved: Mapping[str, Form], like: Mapping[str, Form], extra: list[str], missing: list[str]
) -> list[tuple[str, str]]:
    """Pair extra leaves with missing ones: of the same form, the names most alike first."""
    groups: dict[Form, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for path in extra:
        groups[saved[path]][0].append(path)
    for path in missing:
        groups[like[path]][1].append(path)
    pairs = []
    for olds, news in groups.values():
        if len(olds) * len(news) > _COMPARED:
            pairs += zip(olds, news, strict=False)
            continue
        ranked = sorted((-_likeness(a, b), i, a, b) for i, a in enumerate(olds) for b in news)
        for _, _, a, b in ranked:
            if a in olds and b in news:
                pairs.append((a, b))
                olds.remove(a)
                news.remove(b)
    order = {path: i for i, path in enumerate(missing)}
    return sorted(pairs, key=lambda pair: order[pair[1]])


def _likeness(one: str, other: str) -> int:
    return _common(one, other) + _common(one[::-1], other[::-1])


def _common(one: str, other: str) -> int:
    for i, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return i
    return min(len(one), len(other))
