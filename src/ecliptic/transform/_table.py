"""The tables of programs: one for each function and set of options."""

import threading
import types
import weakref
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from ecliptic.transform._program import Dispatch, Options, Program
from ecliptic.transform._static import explain, static_key
from ecliptic.tree import array_type

# How many programs one function keeps. A function that is given a new static value at each call
# (a fresh lambda) compiles each time; it shall not also hold on to all of them.
_MAX_PROGRAMS = 2048

# How many programs of callable PyTrees other wrappers find again: `filter_jit(filter_grad(f))` in a
# loop makes a wrapper each time. They are few, as they hold on to functions that are gone.
_MAX_LATEST = 16


# Called with each table and program that is made.
on_program: list[Callable[["Table", Program], None]] = []


class Table:
    """The programs of one function.

    Args:
        function: returns the function; None if it comes as an argument.
        options: how it is compiled.
        kind: the class of the function, if that is a callable PyTree: an argument of its programs
            like any other. Wrappers of equal ones have the latest programs in common.
    """

    __slots__ = ("__weakref__", "dispatches", "function", "kind", "lock", "options", "programs")

    def __init__(
        self, function: Callable[[], Any], options: Options, kind: type | None = None
    ) -> None:
        self.function = function
        self.options = options
        self.kind = kind
        self.programs: OrderedDict[Any, Program] = OrderedDict()
        self.lock = threading.Lock()
        # The wrappers that remember programs, by identity: all are equal.
        self.dispatches: weakref.WeakValueDictionary[int, Dispatch] = weakref.WeakValueDictionary()
        _every.add(self)

    def find(self, leaves: list[Any], treedef: Any) -> Program:
        """The program for these arguments; a new one if there is none."""
        traced = [array_type(type(leaf)) for leaf in leaves]
        static = tuple(static_key(x) for x, yes in zip(leaves, traced, strict=True) if not yes)
        key = (treedef, tuple(traced), static)
        with self.lock:
            try:
                program = self.programs.get(key)
                missing = program is None
                if missing and self.kind is not None:
                    program = _latest.get((self.kind, self.options, key))
            except Exception as error:
                raise explain(treedef, leaves, error) from error
            if program is None:
                program = self._make(leaves, treedef)
                if self.kind is not None:
                    _latest.add((self.kind, self.options, key), program)
            if missing:
                self.programs[key] = program
                if len(self.programs) > _MAX_PROGRAMS:
                    self.programs.popitem(last=False)
            else:
                self.programs.move_to_end(key)
                program.types = list(map(type, leaves))
        return program

    def _make(self, leaves: list[Any], treedef: Any) -> Program:
        program = Program(self.function, leaves, treedef, self.options)
        for call in on_program:
            call(self, program)
        return program

    def all_programs(self) -> list[Program]:
        """All programs, those included that only wrappers remember."""
        with self.lock:
            programs = list(self.programs.values())
        for dispatch in list(self.dispatches.values()):
            programs += dispatch.recent
        return list(dict.fromkeys(programs))

    def clear(self) -> None:
        """Drops all programs, with what JAX has compiled for them."""
        programs = self.all_programs()
        with self.lock:
            self.programs.clear()
        for dispatch in list(self.dispatches.values()):
            dispatch.recent = ()
        _latest.drop(programs)
        for program in programs:
            program.jitted.clear_cache()


class _Latest:
    """The programs of callable PyTrees that were made last, in any table."""

    def __init__(self) -> None:
        self._programs: OrderedDict[Any, Program] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any) -> Program | None:
        with self._lock:
            program = self._programs.get(key)
            if program is not None:
                self._programs.move_to_end(key)
            return program

    def add(self, key: Any, program: Program) -> None:
        with self._lock:
            self._programs[key] = program
            if len(self._programs) > _MAX_LATEST:
                self._programs.popitem(last=False)

    def drop(self, programs: list[Program]) -> None:
        with self._lock:
            for key in [key for key, program in self._programs.items() if program in programs]:
                del self._programs[key]


_latest = _Latest()
_every: weakref.WeakSet[Table] = weakref.WeakSet()
_tables: weakref.WeakKeyDictionary[Any, dict[Options, Table]] = weakref.WeakKeyDictionary()
_tables_lock = threading.Lock()


def table_of(fun: Any, options: Options, *, leaf: bool) -> Table:
    """The table of a function. `filter_jit(f)` written twice is one function compiled once.

    Args:
        fun: the function.
        options: how it is compiled.
        leaf: whether it is a leaf, and not a callable PyTree.
    """
    try:
        hash(options)
    except TypeError:
        return Table((lambda: fun) if leaf else _nothing, options)
    if not leaf:
        return Table(_nothing, options, type(fun))
    if type(fun) is not types.FunctionType:
        return Table(lambda: fun, options)
    with _tables_lock:
        of_function = _tables.setdefault(fun, {})
        if options not in of_function:
            # The table must not keep the function alive: it lives as long as the function does.
            of_function[options] = Table(weakref.ref(fun), options)
        return of_function[options]


def _nothing() -> None:
    """In the place of a function that comes as an argument."""


def tables_of(fun: Any) -> list[Table]:
    """The tables of a function that was given to `filter_jit`; empty for any other."""
    with _tables_lock:
        return list(_tables.get(fun, {}).values()) if type(fun) is types.FunctionType else []


def every_table() -> list[Table]:
    """All tables that there are."""
    with _tables_lock:
        return list(_every)
