"""The programs behind `filter_jit`: one for each static part, and how they are found.

A call of the general kind goes like this:

1. The arguments are flattened, and the leaves' exact types listed.
2. The last few programs of this function are asked whether tree, types and static leaves are
   theirs. Static leaves are compared by identity first; in a loop that settles it.
3. Where none is, a table is asked by hash, and failing that, a new program is made.
4. The arrays go to a `jax.jit` made for these static parts. Its output is the user's, or an
   `Output` that says what is to be filled in around its arrays.

Nothing waits for the device. A program that is called in a loop gets a collector, which takes the
place of steps 1 to 3.
"""

import contextlib
import dataclasses
import operator
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
from jax.tree_util import tree_flatten

from ecliptic import _jax
from ecliptic.transform._collect import write_collector
from ecliptic.transform._donation import Donation
from ecliptic.transform._failure import (
    UnwatchedTraceError,
    Watch,
    require_watch,
    waiting,
    watching,
)
from ecliptic.transform._history import run_traced
from ecliptic.transform._shard import filter_shard, lay_shardings
from ecliptic.transform._static import same_static
from ecliptic.tree import array_type, is_array
from ecliptic.tree._passage import Passage, find_used, use_up_at

# A program that is called this often is called in a loop, and a collector pays.
_CALLS_BEFORE_COLLECTOR = 4

# How many recently used programs are compared without hashing.
_MAX_RECENT = 4


class Output:
    """An output with leaves that are no arrays, as the traced function returns it to `jax.jit`.

    A node of its own around the arrays. What it takes to rebuild the user's output is its
    metadata, so JAX keeps it with the program.
    """

    __slots__ = ("arrays", "positions", "template", "treedef")

    def __init__(self, arrays: Any, treedef: Any, template: list[Any], positions: list[int]):
        self.arrays = arrays
        self.treedef = treedef
        self.template = template
        self.positions = positions

    def rebuild(self) -> Any:
        """The user's output."""
        leaves = self.template.copy()
        for position, array in zip(self.positions, self.arrays, strict=True):
            leaves[position] = array
        return self.treedef.unflatten(leaves)


def pack_output(out: Any) -> Any:
    """An output as a traced function returns it: itself if all its leaves are arrays."""
    leaves, treedef = tree_flatten(out)
    positions = [i for i, leaf in enumerate(leaves) if is_array(leaf)]
    if len(positions) == len(leaves):
        return out
    arrays = [leaves[i] for i in positions]
    template = [None if is_array(leaf) else leaf for leaf in leaves]
    return Output(arrays, treedef, template, positions)


class _Structure:
    """Metadata of an `Output`."""

    __slots__ = ("parts",)

    def __init__(self, *parts: Any) -> None:
        self.parts = parts

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _Structure):
            return NotImplemented
        (treedef, template, positions), (treedef_, template_, positions_) = self.parts, other.parts
        return self is other or (
            positions == positions_
            and treedef == treedef_
            and all(
                type(x) is type(y) and same_static(x, y)
                for x, y in zip(template, template_, strict=True)
            )
        )

    def __hash__(self) -> int:
        return hash(tuple(self.parts[2]))


jax.tree_util.register_pytree_node(
    Output,
    lambda output: (output.arrays, _Structure(output.treedef, output.template, output.positions)),
    lambda structure, arrays: Output(arrays, *structure.parts),
)


def _picker(positions: list[int]) -> Callable[[list[Any]], tuple[Any, ...]]:
    """A function that picks these positions of a list, as a tuple, at the speed of C."""
    if not positions:
        return lambda leaves: ()
    if len(positions) == 1:
        only = positions[0]
        return lambda leaves: (leaves[only],)
    return operator.itemgetter(*positions)


class _Silence:
    """Keeps JAX from warning of donated arrays that it had no use for.

    It warns while it lowers, which comes right after a trace. So the traced function begins the
    silence and the end of the call ends it; a call that traces nothing pays for one check.
    """

    __slots__ = ("begun",)

    def __init__(self) -> None:
        self.begun: list[Any] = []

    @staticmethod
    @contextlib.contextmanager
    def quiet() -> Iterator[None]:
        """A stretch of code without that warning."""
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Some donated buffers were not usable")
            yield

    def begin(self) -> None:
        """Begins a silence inside a trace."""
        silence = self.quiet()
        silence.__enter__()
        self.begun.append(silence)

    def around(self, compiled: Callable[..., Any]) -> Callable[..., Any]:
        """`compiled`, ending the silences that its trace begins."""

        def run(*args: Any) -> Any:
            try:
                return compiled(*args)
            finally:
                while self.begun:
                    self.begun.pop().__exit__(None, None, None)

        return run


def _program(
    function: Callable[[], Any], order: list[int], compiled: "Program", options: "Options"
) -> Callable[..., Any]:
    """The function of arrays that is compiled.

    Args:
        function: returns the user's function; None if it comes as the first argument.
        order: the positions of leaves: those donated, the other arrays, those that are static.
        compiled: the program that it is for, which must not be held on to.
        options: how it is compiled.
    """
    treedef, static, silence = compiled.treedef, compiled.static, compiled.silence
    watch, used = compiled.watch, compiled.used

    def program(given: Any, kept: Any) -> Any:
        require_watch(watch)
        if silence is not None:
            silence.begin()
        merged: list[Any] = [None] * len(order)
        for position, leaf in zip(order, (*given, *kept, *static), strict=True):
            merged[position] = leaf
        passage = Passage()
        args, kwargs = inside = passage.unflatten(treedef, merged)
        fun = function()
        if fun is None:
            fun, *args = args
        out = run_traced(fun, args, kwargs, merged, treedef, options)
        # The program outlives the nodes that it was made for: others at the same places are next.
        if passage.has_used:
            used.extend([path for path in find_used(inside) if path not in used])
        if options.out_shardings is not None:
            out = filter_shard(out, options.out_shardings)
        return pack_output(out)

    # What profiles and compiler dumps show.
    program.__name__ = program.__qualname__ = options.name
    return program


# Once a trace failed, JAX 0.9.0 traces the function anew at each call with the same shapes. So no
# program is tried without a watch there, which costs some microseconds a call.
_TRACES_MAY_FAIL = jax.__version_info__ >= (0, 9, 1)


class Program:
    """One compiled function: for one tree, one choice of traced leaves, one set of static leaves.

    `jax.jit` below it tells shapes and dtypes apart.
    """

    __slots__ = (
        "calls", "collect", "compiled", "donated", "jitted", "lock", "name", "pick_donated",
        "pick_kept", "pick_static", "run", "silence", "static", "traced", "treedef", "types",
        "used", "watch",
    )  # fmt: skip

    def __init__(
        self, function: Callable[[], Any], leaves: list[Any], treedef: Any, options: "Options"
    ) -> None:
        is_traced = [array_type(type(leaf)) for leaf in leaves]
        traced = [i for i, yes in enumerate(is_traced) if yes]
        held = [i for i, yes in enumerate(is_traced) if not yes]
        donated = options.donation.leaves(traced, treedef)
        given = [i for i in traced if i in donated]
        kept = [i for i in traced if i not in donated]
        self.name = options.name
        self.treedef = treedef
        self.types = list(map(type, leaves))
        self.traced = traced
        self.donated = donated
        self.pick_donated = _picker(given)
        self.pick_kept = _picker(kept)
        self.pick_static = _picker(held)
        self.static = self.pick_static(leaves)
        self.lock: threading.Lock | None = threading.Lock()
        self.calls = 0
        self.collect: Callable[..., Any] | None = None
        self.silence = _Silence() if options.donation.silent else None
        self.watch = Watch()
        # The paths of the nodes in `(args, kwargs)` that a call uses up.
        self.used: list[Any] = []
        how: dict[str, Any] = {"donate_argnums": 0} if donated else {}
        if options.in_shardings is not None:
            where = options.of_leaves(leaves, treedef)
            how["in_shardings"] = tuple(where[i] for i in given), tuple(where[i] for i in kept)
        program = _program(function, given + kept + held, self, options)
        self.jitted: Any = jax.jit(program, **how, **dict(options.jitkwargs))
        self.compiled = self.silence.around(self.jitted) if self.silence else self.jitted
        self.run: Callable[..., Any] = _unwatched

    def matches(self, leaves: list[Any], leaf_types: list[type], treedef: Any) -> bool:
        """Whether these arguments are for this program, as far as can be told without hashing."""
        if self.types != leaf_types:
            return False
        try:
            if self.treedef != treedef:
                return False
        except Exception:
            # A static field holds something that cannot be compared, such as an array. Hashing
            # comes next, and says which.
            return False
        static = self.pick_static(leaves)
        return all(map(operator.is_, static, self.static)) or all(
            map(same_static, static, self.static)
        )

    def arrays_of(
        self, leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """The donated and the other arrays among the leaves of these arguments."""
        self.calls += 1
        if self.calls == _CALLS_BEFORE_COLLECTOR:
            positions = [i in self.donated for i in self.traced]
            self.collect = write_collector(
                args, kwargs, len(positions), positions.__getitem__, self.name
            )
        return self.pick_donated(leaves), self.pick_kept(leaves)

    def call(self, leaves: list[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the program the general way, with flattened arguments."""
        given, kept = self.arrays_of(leaves, args, kwargs)
        lock = self.lock
        if lock is None:
            with contextlib.suppress(UnwatchedTraceError):
                return self.run(given, kept)
            # (Out here, an error of the user's function does not appear as a consequence of that.)
            return self.watched(given, kept)
        if getattr(_tracing, "now", False):
            return self.watched(given, kept)
        # Threads that call at the same time wait for the first to trace. A thread that is tracing
        # already does not wait for a second lock, so no two wait for each other.
        with lock:
            _tracing.now = True
            try:
                return self.watched(given, kept)
            finally:
                _tracing.now = False
                self.lock = None

    def watched(self, given: Any, kept: Any) -> Any:
        """Calls the program, which may have to be traced and compiled for that."""
        with self.watching(compiles=_jax.trace_state_clean()):
            return waiting(self.compiled, self.watch)(given, kept)

    @contextlib.contextmanager
    def watching(self, *, compiles: bool) -> Iterator[None]:
        """A stretch of code in which the program may be traced.

        Whether there is a check in it decides how it is called from then on.

        Args:
            compiles: whether it is compiled, too. Only then is it known that there is no check.
        """
        try:
            with watching(self.watch):
                yield
        finally:
            if not _TRACES_MAY_FAIL:
                self.run = _unwatched
            elif self.watch.found:
                self.run = waiting(self.compiled, self.watch)
            else:
                self.run = self.compiled if compiles else _unwatched


def _unwatched(given: Any, kept: Any) -> Any:
    """In the place of a program that has been traced, and not yet compiled."""
    raise UnwatchedTraceError


def call_anew(program: Program, compiled: Callable[..., Any]) -> None:
    """Lets a program be called by other means from the next call on."""
    program.compiled = compiled
    program.run = _unwatched


_tracing = threading.local()


@dataclasses.dataclass(frozen=True, slots=True)
class Options:
    """How a function is compiled.

    Args:
        name: what the program is called.
        donation: which arguments are donated.
        in_shardings: where the arguments are; a tree prefix of the tuple of positional arguments.
        out_shardings: where the output is put; a tree prefix of it.
        jitkwargs: further options of `jax.jit`.
    """

    name: str
    donation: Donation
    in_shardings: Any
    out_shardings: Any
    jitkwargs: tuple[tuple[str, Any], ...]

    def of_leaves(self, leaves: list[Any], treedef: Any) -> list[Any]:
        """The sharding of each leaf of the arguments; None where nothing is said."""
        args, kwargs = treedef.unflatten(leaves)
        bound = args[: self.donation.bound]
        unspecified = [None] * jax.tree_util.tree_structure(bound).num_leaves
        found = lay_shardings(args[self.donation.bound :], self.in_shardings, "in_shardings")
        rest = [None] * jax.tree_util.tree_structure(kwargs).num_leaves
        return [*unspecified, *found, *rest]


class Dispatch:
    """What a wrapper remembers between calls. All are equal: it is no part of the tree."""

    __slots__ = ("__weakref__", "recent", "table")

    def __init__(self, table: Any) -> None:
        self.table = table
        table.dispatches[id(self)] = self
        self.recent: tuple[Program, ...] = ()

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls the general way: flatten, compare or look up."""
        leaves, treedef = tree_flatten((args, kwargs))
        leaf_types = list(map(type, leaves))
        for program in self.recent:
            if program.matches(leaves, leaf_types, treedef):
                break
        else:
            program = self.table.find(leaves, treedef)
            others = [p for p in self.recent if p is not program]
            self.recent = (program, *others[: _MAX_RECENT - 1])
        out = program.call(leaves, args, kwargs)
        if program.used:
            use_up_at((args, kwargs), program.used)
        return out

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dispatch)

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "..."
