"""`tree_summary`: a model as a table."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from jaxtyping import PyTree

from ecliptic.errors import MissingPackageError
from ecliptic.state import State
from ecliptic.tree import tree_pformat
from ecliptic.tree._difference import show_value
from ecliptic.view._html import folding_table
from ecliptic.view._outputs import Outputs, find_outputs
from ecliptic.view._rows import SummaryRow, is_trainable, make_rows

# How much of a row's static values is shown as text. A page shows all.
_STATIC = 60
_RIGHT = {"parameters", "bytes"}
_UNITS = ("KiB", "MiB", "GiB", "TiB")


class TreeSummary:
    """What [`tree_summary`][] returns: a sequence of [`SummaryRow`][], which prints as a table.

    The first row is that of the whole tree, so its numbers are the totals. `str` gives text;
    `rich.print` a table of the package `rich`; a notebook a table that can be folded.

    !!! Example

        >>> import jax.numpy as jnp
        >>> from ecliptic.view import tree_summary
        >>> summary = tree_summary({"a": jnp.ones(2), "b": jnp.ones(3)})
        >>> len(summary), summary.total.parameters
        (3, 5)
        >>> [row.path for row in summary if row.is_leaf]
        ["model['a']", "model['b']"]
    """

    def __init__(
        self, rows: Sequence[SummaryRow], depth: int | None, leaves: bool, with_outputs: bool
    ) -> None:
        self._rows = list(rows)
        self._depth = depth
        self._leaves = leaves
        self._with_outputs = with_outputs

    def __iter__(self) -> Iterator[SummaryRow]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> SummaryRow:
        return self._rows[index]

    @property
    def total(self) -> SummaryRow:
        """The row of the whole tree."""
        return self._rows[0]

    def __str__(self) -> str:
        heading = self._heading()
        cells = [heading, *(self._cells(row) for row in self._shown())]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  ".join(
                text.rjust(width) if name in _RIGHT else text.ljust(width)
                for name, text, width in zip(heading, row, widths, strict=True)
            ).rstrip()
            for row in cells
        ]
        rule = "─" * max(map(len, lines))
        return "\n".join([lines[0], rule, *lines[1:], rule, *self._totals()])

    __repr__ = __str__

    def __rich__(self) -> Any:
        try:
            from rich.table import Table  # noqa: PLC0415
            from rich.text import Text  # noqa: PLC0415
        except ImportError as error:
            raise MissingPackageError(
                "a summary is shown in colours by the package `rich`, which is not installed. "
                "Install it (`pip install rich`, or `ecliptic[view]`), or print it as text."
            ) from error
        table = Table(caption="\n".join(self._totals()), caption_justify="left", box=None)
        for name in self._heading():
            table.add_column(name, justify="right" if name in _RIGHT else "left")
        for row in self._shown():
            style = "dim" if row.is_leaf else "bold" if row.level == 0 else ""
            table.add_row(*(Text(text) for text in self._cells(row)), style=style)
        return table

    def _repr_html_(self) -> str:
        rows = [row for row in self._rows if self._leaves or not row.is_leaf]
        cells = [self._cells(row, longest=None) for row in rows]
        right = [name in _RIGHT for name in self._heading()]
        levels = [row.level for row in rows]
        return folding_table(self._heading(), cells, levels, right, self._totals(), self._depth)

    def _shown(self) -> list[SummaryRow]:
        deepest = float("inf") if self._depth is None else self._depth
        return [
            row
            for row in self._rows
            if row.level <= deepest and (self._leaves or not row.is_leaf or row.level == 0)
        ]

    def _heading(self) -> list[str]:
        outputs = ["output"] if self._with_outputs else []
        return ["path", "type", *outputs, "parameters", "bytes", "dtype", "trainable", "static"]

    def _cells(self, row: SummaryRow, longest: int | None = _STATIC) -> list[str]:
        static = ", ".join(f"{name}={show_value(value)}" for name, value in row.static.items())
        if longest is not None and len(static) > longest:
            static = f"{static[: longest - 1]}…"
        if row.same_as is not None:
            static = f"the same as {row.same_as}"
        outputs = [" or ".join(map(_show_output, row.outputs))] if self._with_outputs else []
        return [
            row.path,
            row.type,
            *outputs,
            f"{row.parameters:,}",
            _size(row.bytes),
            ", ".join(row.dtypes),
            _trainable(row),
            static,
        ]

    def _totals(self) -> list[str]:
        total = self.total
        fixed = total.parameters - total.trainable
        lines = [
            f"{total.parameters:,} parameters ({_size(total.bytes)}): {total.trainable:,} "
            f"trainable, {fixed:,} not"
        ]
        twice = sum(row.same_as is not None for row in self._rows)
        if twice:
            lines.append(f"{twice} of the arrays are in several places, and counted once")
        return lines


def tree_summary(
    model: PyTree,
    *example_inputs: Any,
    depth: int | None = None,
    leaves: bool = True,
    filter_spec: PyTree = is_trainable,
    call: Callable[..., Any] | None = None,
    root: str = "model",
    **example_keywords: Any,
) -> TreeSummary:
    """Make a table of a model: of each part its type, output, parameters, memory and static values.

    Parts are the nodes of the tree, save for lists, tuples and dictionaries, which are seen in the
    paths only. Parameters are the elements of arrays. An array that is in several places is counted
    once.

    The outputs are found by tracing the model, as [`ecliptic.filter_eval_shape`][] does: nothing is
    computed. What a part returns is shown as it returns it: under `jax.vmap`, without the mapped
    axis. A part that is only ever called by another method than `__call__`, or not at all, has no
    output.

    Args:
        model: any PyTree. Arrays may be given by a `jax.ShapeDtypeStruct`, as by
            `filter_eval_shape(Model, ...)`: a model can be looked at before there is memory for it.
        *example_inputs: what the model is called with; arrays may be given by a
            `jax.ShapeDtypeStruct`. Without any, there is no column of outputs.
        depth: down to which level rows are shown; all by default. On a page, all others are folded.
        leaves: whether each array has a row.
        filter_spec: what is trainable, as in `ecliptic.partition`. By default, what
            `ecliptic.filter_grad` differentiates: arrays of real or complex numbers.
        call: how the model is called: with the model, `example_inputs` and `example_keywords`. By
            default, `model(*example_inputs, **example_keywords)`. For a model of single examples
            and a batch, `lambda model, x: jax.vmap(model)(x)`.
        root: the name of the model in paths.
        **example_keywords: keyword arguments that the model is called with, such as `key`.

    Returns:
        A sequence of [`SummaryRow`][], which prints as a table.

    !!! Example

        >>> import jax, jax.numpy as jnp
        >>> from ecliptic import nn
        >>> from ecliptic.view import tree_summary
        >>> model = nn.MLP(2, 1, width_size=8, depth=1, key=jax.random.key(0))
        >>> summary = tree_summary(model, jnp.ones(2))
        >>> for row in summary:
        ...     print(row.path, row.type, *row.outputs, row.parameters)
        model MLP ShapeDtypeStruct(shape=(1,), dtype=float32) 33
        model.layers[0] Linear ShapeDtypeStruct(shape=(8,), dtype=float32) 24
        model.layers[0].weight f32[8,2] 16
        model.layers[0].bias f32[8] 8
        model.layers[1] Linear ShapeDtypeStruct(shape=(1,), dtype=float32) 9
        model.layers[1].weight f32[1,8] 8
        model.layers[1].bias f32[1] 1
        >>> print(tree_summary(model, depth=0))
        path   type  parameters  bytes  dtype    trainable  static
        ...
        33 parameters (132 B): 33 trainable, 0 not
    """
    outputs: Outputs = {}
    wanted = bool(example_inputs or example_keywords or call is not None)
    if wanted:
        outputs = find_outputs(model, call or _call, example_inputs, example_keywords)
    rows = make_rows(model, filter_spec, root, outputs)
    return TreeSummary(rows, depth, leaves, wanted)


def _call(model: Any, *args: Any, **kwargs: Any) -> Any:
    return model(*args, **kwargs)


def _show_output(output: Any) -> str:
    return tree_pformat(
        output,
        width=10_000,
        struct_as_array=True,
        truncate_leaf=lambda node: isinstance(node, State),
    )


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    power = min((count.bit_length() - 1) // 10, len(_UNITS))
    return f"{count / 1024**power:.1f} {_UNITS[power - 1]}"


def _trainable(row: SummaryRow) -> str:
    if not row.parameters:
        return ""
    if row.trainable == row.parameters:
        return "yes"
    return "partly" if row.trainable else "no"
