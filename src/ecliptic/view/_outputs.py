"""What each part of a model returns, found while the model is traced once.

While it is traced, the classes of its parts have another `__call__`, which notes what is returned.
An instance is known by its identity. Transformations such as `filter_vmap`, `filter_checkpoint` or
`filter_jit` build new instances out of the arrays that they trace; these are matched with the parts
below the one whose call is under way: by class, structure and shapes, in order.
"""

import contextlib
import inspect
import itertools
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.tree_util as jtu
from jax.tree_util import tree_flatten, tree_leaves, tree_structure
from jaxtyping import PyTree

from ecliptic.tree import is_array
from ecliptic.tree._one_level import children_with_keys
from ecliptic.tree._paths import KeyPath, format_path
from ecliptic.tree._predicates import has_shape

Outputs = dict[str, list[Any]]

# Classes are changed while a model is traced; by one thread at a time.
_lock = threading.RLock()
_unique = itertools.count()


def find_outputs(
    model: PyTree, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Outputs:
    """Trace a call of a model, and note what its parts return.

    Args:
        model: the model.
        call: called with the model, `args` and `kwargs`.
        args: example arguments; arrays may be given by a `jax.ShapeDtypeStruct`.
        kwargs: example keyword arguments, likewise.

    Returns:
        For the path of each part that was called, what it returned, with a
        `jax.ShapeDtypeStruct` for each array; once, if it was called several times with the same
        outcome. The path of the model itself is empty.
    """
    leaves, treedef = tree_flatten((model, args, kwargs))
    traced = [i for i, leaf in enumerate(leaves) if _is_traceable(leaf)]

    def run(arrays: list[Any]) -> None:
        mine = leaves.copy()
        for i, array in zip(traced, arrays, strict=True):
            mine[i] = array
        model, args, kwargs = treedef.unflatten(mine)
        recorder.follow(model, ())
        try:
            with recorder.watching():
                recorder.note((), call(model, *args, **kwargs), last=True)
        except Exception as error:
            at = format_path(recorder.active[-1] if recorder.active else (), "model")
            error.add_note(f"This happened while `tree_summary` traced the call of `{at}`.")
            raise

    recorder = _Recorder()
    with _lock, _traced_anew():
        jax.eval_shape(run, [leaves[i] for i in traced])
    return recorder.outputs


def _is_traceable(leaf: Any) -> bool:
    if not is_array(leaf):
        return isinstance(leaf, jax.ShapeDtypeStruct)
    try:
        jax.typeof(leaf)
    except TypeError:
        # An array of NumPy with strings or objects, for one.
        return False
    return True


def _traced_anew() -> contextlib.AbstractContextManager[Any]:
    """A context in which `jax.jit` does not remember what it traced before.

    What it remembers it does not call, so its parts would not be seen.
    """
    try:
        from jax.experimental.xla_metadata import set_xla_metadata  # noqa: PLC0415
    except ImportError:
        return contextlib.nullcontext()
    return set_xla_metadata(ecliptic_summary=str(next(_unique)))


class _Recorder:
    """Knows the parts of a model, and notes what they return."""

    def __init__(self) -> None:
        self.outputs: Outputs = {}
        self.active: list[KeyPath] = []
        self._paths: dict[int, KeyPath] = {}
        # An identity is that of an object only as long as the object lives.
        self._alive: list[Any] = []
        self._parts: list[tuple[KeyPath, Any]] = []
        self._thread = threading.get_ident()

    def follow(self, tree: Any, path: KeyPath) -> None:
        """Know the parts of a tree that stands for the one at `path`."""
        parts = list(_callable_nodes(tree, path))
        if not self._alive:
            self._parts = parts
        self._alive.append(parts)
        for place, node in parts:
            self._paths[id(node)] = place

    def note(self, path: KeyPath, output: Any, *, last: bool = False) -> None:
        described = jax.tree.map(_describe, output)
        found = self.outputs.setdefault(format_path(path), [])
        if last:
            found.clear()
        if not any(_same(described, known) for known in found):
            found.append(described)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """While this lasts, calls of the parts are noted."""
        with contextlib.ExitStack() as stack:
            for cls in dict.fromkeys(type(node) for _, node in self._parts):
                stack.enter_context(_replaced_call(cls, self._probe))
            yield

    def _probe(self, original: Any) -> Callable[..., Any]:
        def __call__(self_: Any, /, *args: Any, **kwargs: Any) -> Any:
            bound = original.__get__(self_, type(self_))
            if threading.get_ident() != self._thread:
                return bound(*args, **kwargs)
            path = self._find(self_)
            # (A `super().__call__` is a part of the call that is under way.)
            if path is None or (self.active and self.active[-1] == path):
                return bound(*args, **kwargs)
            self.active.append(path)
            output = bound(*args, **kwargs)
            self.note(path, output)
            self.active.pop()
            return output

        return __call__

    def _find(self, node: Any) -> KeyPath | None:
        path = self._paths.get(id(node))
        if path is not None:
            return path
        above = self.active[-1] if self.active else ()
        candidates = [
            (place, part)
            for place, part in self._parts
            if type(part) is type(node) and place[: len(above)] == above and place != above
        ]
        ranked = [
            (rank, format_path(place) in self.outputs, i)
            for i, (place, part) in enumerate(candidates)
            if (rank := _likeness(part, node)) is not None
        ]
        if ranked:
            path = candidates[min(ranked)[-1]][0]
            self.follow(node, path)
        elif len(candidates) == 1:
            path = candidates[0][0]
        return path


def _callable_nodes(tree: Any, path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    children = children_with_keys(tree)
    if children is None:
        return
    if callable(tree):
        yield path, tree
    for key, child in children:
        yield from _callable_nodes(child, (*path, key))


@contextlib.contextmanager
def _replaced_call(cls: Any, probe: Callable[[Any], Any]) -> Iterator[None]:
    original = inspect.getattr_static(cls, "__call__")
    own = "__call__" in vars(cls)
    # A metaclass may have made something else of the function, and has to do so again.
    plain = isinstance(original, types.FunctionType)
    try:
        (type.__setattr__ if plain else setattr)(cls, "__call__", probe(original))
    except TypeError:
        # A class written in C stays as it is.
        yield
        return
    try:
        yield
    finally:
        if own:
            type.__setattr__(cls, "__call__", original)
        else:
            type.__delattr__(cls, "__call__")


def _likeness(part: Any, node: Any) -> int | None:
    """0: the same but for other arrays of the same shapes; 1: without leading axes; None: other."""
    try:
        if tree_structure(part) != tree_structure(node):
            return None
    except Exception:
        return None
    rank = 0
    for one, two in zip(tree_leaves(part), tree_leaves(node), strict=True):
        if has_shape(one) != has_shape(two):
            return None
        if not has_shape(one) or one.shape == two.shape:
            continue
        if one.shape[len(one.shape) - len(two.shape) :] != two.shape:
            return None
        rank = 1
    return rank


def _describe(leaf: Any) -> Any:
    if not is_array(leaf):
        return leaf
    aval = jax.typeof(leaf)
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _same(one: Any, two: Any) -> bool:
    try:
        return bool(jtu.tree_structure(one) == jtu.tree_structure(two)) and all(
            x is y or bool(x == y) for x, y in zip(tree_leaves(one), tree_leaves(two), strict=True)
        )
    except Exception:
        return False
