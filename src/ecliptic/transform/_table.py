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


# Called with each table and program that is made.
on_program: list[Callable[["Table", Program], None]] = []


class Table:
    """The programs of one function."""

    __slots__ = ("__weakref__", "dispatches", "function", "lock", "options", "programs")

    def __init__(self, function: Callable[[], Any], options: Options) -> None:
        self.function = function
        self.options = options
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
            except Exception as error:
                raise explain(treedef, leaves, error) from error
            if program is None:
                program = Program(self.function, leaves, treedef, self.options)
                for call in on_program:
                    call(self, program)
                self.programs[key] = program
                if len(self.programs) > _MAX_PROGRAMS:
                    self.programs.popitem(last=False)
            else:
                self.programs.move_to_end(key)
                program.types = list(map(type, leaves))
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
        for program in programs:
            program.jitted.clear_cache()


_every: weakref.WeakSet[Table] = weakref.WeakSet()
_tables: weakref.WeakKeyDictionary[Any, dict[Options, Table]] = weakref.WeakKeyDictionary()
_tables_lock = threading.Lock()


def table_of(fun: Any, options: Options, *, leaf: bool) -> Table:
    """The table of a function. `filter_jit(f)` written twice is one function compiled once.

    Args:
        fun: the function.
        options: how it is compiled.
        leaf: whether it is a leaf. If not, it is a callable PyTree, an argument of its programs
            like any other, and these are shared by all trees of its class.
    """
    owner = fun if leaf else type(fun)
    try:
        hash(options)
        shared = not leaf or type(fun) is types.FunctionType
    except TypeError:
        shared = False
    if not shared:
        return Table((lambda: fun) if leaf else _nothing, options)
    with _tables_lock:
        of_owner = _tables.setdefault(owner, {})
        if options not in of_owner:
            # The table must not keep the function alive: it lives as long as the function does.
            of_owner[options] = Table(weakref.ref(fun) if leaf else _nothing, options)
        return of_owner[options]


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
