"""What was traced, when, and how long it took: the memory that `debug` reads.

Everything here happens while a function is traced, which takes far longer. A call of a program that
is compiled comes nowhere near.
"""

import dataclasses
import functools
import pathlib
import threading
import time
import types
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import jax

from ecliptic import _jax
from ecliptic.transform._baked import warn_of_constants
from ecliptic.transform._code import code_of, place_of
from ecliptic.transform._signature import Signature

# With how many earlier traces of a function a new one is compared.
_MAX_TRACES = 64

# Options of JAX for which a program is traced anew, and that users change.
_FLAGS = (
    "jax_enable_x64", "jax_numpy_dtype_promotion", "jax_numpy_rank_promotion", "jax_debug_nans",
    "jax_default_matmul_precision", "jax_default_device", "jax_threefry_partitionable",
    "jax_check_tracer_leaks", "jax_softmax_custom_jvp", "jax_default_prng_impl",
)  # fmt: skip

_OWN = f"{pathlib.Path(__file__).parent.parent}/"


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Trace:
    """One trace of a function.

    Args:
        number: which one it is, of all traces of functions with the same code; from 1 on.
        function: the identity of the function; 0 for a PyTree, which has none.
        bound: how many arguments of the signature come before those of a call: the function
            itself, if it is a PyTree.
        signature: the arguments.
        options: how it is compiled.
        flags: options of JAX.
        context: everything of JAX that a trace depends on, to be compared alone.
    """

    number: int
    function: int
    bound: int
    signature: Signature
    options: Any
    flags: dict[str, Any]
    context: Any


class Lineage:
    """All functions with the same code and name: one `def` or `lambda`, however often it is run.

    Args:
        name: what they are called.
        code: their code, if it is Python.
    """

    def __init__(self, name: str, code: types.CodeType | None) -> None:
        self.name = name
        self.place = place_of(code)
        self.internal = code is not None and code.co_filename.startswith(_OWN)
        self.count = 0
        self.functions = 0
        self.seconds = {"trace": 0.0, "lower": 0.0, "compile": 0.0}
        self.compiles = 0
        self.warned = False
        self.traces: deque[Trace] = deque(maxlen=_MAX_TRACES)
        self._alive: dict[int, Any] = {}
        self._lock = threading.Lock()

    def add(self, fun: Any, bound: int, signature: Signature, options: Any) -> "Trace":
        """Adds a trace."""
        identity = self._identify(fun) if bound == 0 else 0
        flags = {name: getattr(jax.config, name, None) for name in _FLAGS}
        with self._lock:
            self.count += 1
            trace = Trace(
                self.count, identity, bound, signature, options, flags, _jax.trace_context()
            )
            self.traces.append(trace)
        return trace

    def _identify(self, fun: Any) -> int:
        """The number of a function; what is remembered of it goes when it goes."""
        identity = id(fun)
        if identity not in self._alive:
            lineage = weakref.ref(self)

            def forget(_: Any) -> None:
                found = lineage()
                if found is not None:
                    found.forget(identity)

            try:
                self._alive[identity] = weakref.ref(fun, forget)
            except TypeError:
                return 0
            self.functions += 1
        return identity

    def forget(self, function: int | None) -> None:
        """Forgets the arguments of the traces of a function; those of all if it is None."""
        with self._lock:
            if function is None:
                self.traces.clear()
                return
            self._alive.pop(function, None)
            kept = [trace for trace in self.traces if trace.function != function]
            self.traces = deque(kept, maxlen=_MAX_TRACES)


# For each code, and for each type of what has none: the lineages by name.
_lineages: weakref.WeakKeyDictionary[Any, dict[str, Lineage]] = weakref.WeakKeyDictionary()
_lock = threading.Lock()

Observer = Callable[[Lineage, Trace, Any, tuple[Trace, ...]], None]

# Called with each trace, the function, and the earlier traces, before the function is run.
_observers: list[Observer] = []


def observe(observer: Observer) -> Callable[[], None]:
    """Lets an observer be called with each trace. Returns what ends that."""
    _observers.append(observer)
    return lambda: _observers.remove(observer)


def lineages() -> list[Lineage]:
    """Everything that was traced so far and still exists."""
    with _lock:
        return [lineage for by_name in _lineages.values() for lineage in by_name.values()]


def lineage_of(fun: Any, name: str) -> Lineage:
    """The lineage of a function."""
    # A construct that compiles on behalf of a user's function says whose code counts.
    code = getattr(fun, "__ecliptic_code__", None) or code_of(fun)
    with _lock:
        by_name = _lineages.setdefault(type(fun) if code is None else code, {})
        if name not in by_name:
            by_name[name] = Lineage(name, code)
        return by_name[name]


def run_traced(
    fun: Any, args: Any, kwargs: dict[str, Any], leaves: list[Any], treedef: Any, options: Any
) -> Any:
    """Runs a function inside the trace that is made of it, and takes note of the trace.

    Args:
        fun: the function.
        args: its positional arguments.
        kwargs: its keyword arguments.
        leaves: those of the arguments, and of the function before them if it is a PyTree.
        treedef: their structure.
        options: how it is compiled.
    """
    lineage = lineage_of(fun, options.name)
    signature = Signature.of_leaves(leaves, treedef)
    earlier = tuple(lineage.traces)
    trace = lineage.add(fun, options.donation.bound, signature, options)
    _warn(lineage, fun, leaves)
    for observer in tuple(_observers):
        observer(lineage, trace, fun, earlier)
    _listen()
    _now.depth += 1
    _now.traces += 1
    begin = time.perf_counter()
    try:
        return fun(*args, **kwargs)
    finally:
        lineage.seconds["trace"] += time.perf_counter() - begin
        _now.depth -= 1
        _now.lineage = lineage


def _warn(lineage: Lineage, fun: Any, leaves: list[Any]) -> None:
    """Warns of large constants, once for each lineage."""
    if lineage.warned:
        return
    found = warn_of_constants(fun, f"`{lineage.name}`")
    for leaf in leaves:
        if callable(leaf):
            found |= warn_of_constants(
                leaf, f"`{lineage.name}`, in its argument `{getattr(leaf, '__name__', leaf)}`"
            )
    lineage.warned = found


class _Now(threading.local):
    """What this thread is tracing."""

    depth = 0
    lineage: Lineage | None = None
    traces = 0
    compiles = 0


_now = _Now()


def made_so_far() -> tuple[int, int]:
    """How many traces were made in this thread, and how many programs JAX has compiled."""
    return _now.traces, _now.compiles


_PHASES = {
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "compile",
}


def _on_event(event: str, duration_secs: float, **kwargs: Any) -> None:
    """Counts the time that JAX lowers and compiles for what this thread has traced last."""
    phase = _PHASES.get(event)
    lineage = _now.lineage
    # While something is being traced, what is compiled is its constants.
    if phase is None or _now.depth:
        return
    _now.compiles += phase == "compile"
    if lineage is None:
        return
    if kwargs.get("fun_name", lineage.name) not in (lineage.name, f"jit({lineage.name})"):
        return
    lineage.seconds[phase] += duration_secs
    if phase == "compile":
        lineage.compiles += 1
        _now.lineage = None


@functools.cache
def _listen() -> None:
    """Begins to count times, with the first trace of the process."""
    jax.monitoring.register_event_duration_secs_listener(_on_event)
