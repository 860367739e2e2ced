"""Programs that are compiled again without a trace, because arrays are placed elsewhere.

`jax.jit` traces a function for types, and compiles what it has traced for each placement of the
arguments on devices. Nobody is told of the second. So while somebody wants to know, a watcher is
put around each compiled program, which sees the arguments and asks whether something was compiled.
"""

import threading
from collections.abc import Callable
from typing import Any

import jax

from ecliptic.transform._code import parameters_of
from ecliptic.transform._history import Lineage, lineage_of, made_so_far
from ecliptic.transform._program import Program, call_anew
from ecliptic.transform._signature import ArrayType, Signature, describe
from ecliptic.transform._table import Table, every_table, on_program
from ecliptic.tree import is_array

# Called with the lineage, the names of the positional arguments, the signature, and that of an
# earlier call that was compiled: None if that was before anybody asked.
Observer = Callable[[Lineage, list[str], Signature, Signature | None], None]

_observers: list[Observer] = []
_lock = threading.RLock()


class _Watcher:
    """A compiled program that tells when it is compiled without having been traced."""

    __slots__ = ("compiled", "earlier", "program", "table")

    def __init__(self, table: Table, program: Program) -> None:
        self.table = table
        self.program = program
        self.compiled = program.compiled
        self.earlier: Signature | None = None

    def __call__(self, given: Any, kept: Any) -> Any:
        traces, compiles = made_so_far()
        # (Before the call: donated arrays are gone after it.)
        now = self._signature(given, kept)
        out = self.compiled(given, kept)
        traces_after, compiles_after = made_so_far()
        if compiles_after > compiles:
            if traces_after == traces:
                self._tell(now)
            self.earlier = now
        return out

    def _signature(self, given: Any, kept: Any) -> Signature:
        program = self.program
        leaves: list[Any] = [None] * len(program.types)
        first = [i for i in program.traced if i in program.donated]
        rest = [i for i in program.traced if i not in program.donated]
        held = [i for i in range(len(leaves)) if i not in set(program.traced)]
        for position, leaf in zip(
            [*first, *rest, *held], [*given, *kept, *program.static], strict=True
        ):
            leaves[position] = _placed(leaf) if is_array(leaf) else describe(leaf)
        return Signature(leaves, program.treedef)

    def _tell(self, now: Signature) -> None:
        fun = self.table.function()
        names = []
        if fun is None:
            (fun, *_), _ = now.arguments()
            names = [self.program.name]
        lineage = lineage_of(fun, self.program.name)
        for observer in tuple(_observers):
            observer(lineage, [*names, *parameters_of(fun)], now, self.earlier)


def _placed(array: Any) -> ArrayType:
    """The type of an array, with where it is in place of how it is sharded."""
    kind = ArrayType.of(array)
    where = getattr(array, "sharding", None) if isinstance(array, jax.Array) else "not on a device"
    return ArrayType(kind.shape, kind.dtype, kind.weak_type, str(where))


def _watch(table: Table, program: Program) -> None:
    call_anew(program, _Watcher(table, program))


def observe_placements(observer: Observer) -> Callable[[], None]:
    """Lets an observer be called when a program is compiled for another placement.

    Returns:
        What ends that.
    """
    with _lock:
        _observers.append(observer)
        if len(_observers) == 1:
            on_program.append(_watch)
            for table in every_table():
                for program in table.all_programs():
                    _watch(table, program)

    def end() -> None:
        with _lock:
            _observers.remove(observer)
            if not _observers:
                on_program.remove(_watch)
                for table in every_table():
                    for program in table.all_programs():
                        if isinstance(program.compiled, _Watcher):
                            call_anew(program, program.compiled.compiled)

    return end
