"""Tables of programs."""

import dataclasses
from collections.abc import Callable
from types import ModuleType
from typing import Any

Program = Callable[[ModuleType], Any]


@dataclasses.dataclass
class Table:
    """Programs of one topic, by name. Each takes the library as `eqx` and returns what it found.

    Args:
        topic: the first half of each program's name.
    """

    topic: str
    programs: dict[str, Program] = dataclasses.field(default_factory=dict)

    def __call__(self, program: Program) -> Program:
        """Adds a program under the name of its function."""
        return self.add(program.__name__, program)

    def add(self, name: str, program: Program) -> Program:
        """Adds a program.

        Args:
            name: what it is about.
            program: a function of the library.
        """
        name = f"{self.topic}.{name}"
        if name in self.programs:
            raise ValueError(f"there are two programs {name!r}")
        self.programs[name] = program
        return program

    def rows(self, **programs: Program) -> None:
        """Adds several programs, each under the name of its argument."""
        for name, program in programs.items():
            self.add(name, program)
