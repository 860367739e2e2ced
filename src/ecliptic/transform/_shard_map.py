"""`filter_shard_map`: `jax.shard_map` over any PyTree.

As in `filter_vmap`, all goes through flat lists: one of the arrays of the arguments, each with its
partition, and for the outputs one list for each partition that occurs, because how many outputs
there are is not known before the function is traced.
"""

import math
from collections.abc import Callable, Set
from typing import Any, NamedTuple, ParamSpec, TypeVar, overload

import jax
from jax.sharding import AbstractMesh, Mesh, PartitionSpec
from jax.tree_util import tree_flatten, tree_flatten_with_path, tree_leaves
from jaxtyping import PyTree

from ecliptic import _jax
from ecliptic.errors import ArgumentError, ArgumentTypeError, StructureError
from ecliptic.module import Static, looks_like_wrapped
from ecliptic.transform._failure import Watch, waiting, watching
from ecliptic.transform._static import argument_path
from ecliptic.transform._targets import positional_parameters
from ecliptic.transform._wrapper import AbstractWrapper, check_callable, name_of
from ecliptic.tree import first_difference, format_path, is_array

_P = ParamSpec("_P")
_T = TypeVar("_T")

_unset: Any = object()

_REPLICATED = PartitionSpec()

Spec = PyTree[PartitionSpec | None | Callable[[Any], PartitionSpec | None]]


class _Options(NamedTuple):
    """How a function is mapped over a mesh."""

    mesh: Mesh | AbstractMesh | None
    in_specs: Any
    out_specs: Any
    axis_names: Set[Any]
    check_vma: bool
    is_leaf: Callable[[Any], bool] | None

    def sizes(self) -> dict[Any, int]:
        """The sizes of the axes of the mesh; empty if there is none."""
        mesh = jax.sharding.get_abstract_mesh() if self.mesh is None else self.mesh
        return {} if mesh.empty else dict(mesh.shape)


class _ShardMap(AbstractWrapper):
    _options: Static[_Options]

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        mapping = _Mapping(self._fun, self._options.value, args, kwargs)
        if not _jax.trace_state_clean():
            return mapping.run()
        # Each operation is a program of its own, for several devices.
        watch = Watch()
        with watching(watch):
            return waiting(mapping.run, watch)()


looks_like_wrapped(_ShardMap)


class _Unknown(Exception):
    """Functions in `out_specs` returned partitions for which there is no list yet."""

    def __init__(self, specs: list[PartitionSpec]) -> None:
        self.specs = specs


class _Mapping:
    """One call of a mapped function."""

    def __init__(
        self, fun: Any, options: _Options, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self.fun = fun
        self.options = options
        self.leaves, self.treedef = tree_flatten((fun, args, kwargs))
        self.positions = [i for i, leaf in enumerate(self.leaves) if is_array(leaf)]
        self.in_specs = None
        if options.in_specs is not _unset:
            specs = _arrange(options.in_specs, fun, args, kwargs)
            arguments = _Side("in_specs", (args, kwargs), argument_path, (args, kwargs))
            of_function = [_REPLICATED] * (len(self.leaves) - len(arguments.leaves))
            of_leaves = [*of_function, *arguments.lay(specs, options)]
            self.in_specs = [of_leaves[i] for i in self.positions]
        self.groups: list[PartitionSpec] = []
        for entry in tree_leaves(options.out_specs, is_leaf=_is_none):
            if not callable(entry):
                self._add_group(_as_spec(entry))
        self.static: list[Any] = []
        self.plan: list[tuple[int, int]] = []
        self.out_treedef: Any = None

    def _add_group(self, spec: PartitionSpec) -> None:
        if spec not in self.groups:
            self.groups.append(spec)

    def run(self) -> Any:
        """Maps the function, and returns its output."""
        try:
            groups = self._run_once()
        except _Unknown as unknown:
            # Known only after a trace. There are lists for all of them at the second one.
            for spec in unknown.specs:
                self._add_group(spec)
            groups = self._run_once()
        sources = [*groups, self.static]
        return self.out_treedef.unflatten([sources[group][index] for group, index in self.plan])

    def _run_once(self) -> Any:
        options = self.options
        in_specs = {} if self.in_specs is None else {"in_specs": (self.in_specs,)}

        def function(arrays: list[Any]) -> Any:
            return self._on_flat_list(arrays)

        # (JAX's messages have the name.)
        function.__name__ = function.__qualname__ = name_of(self.fun)
        mapped = jax.shard_map(
            function,
            mesh=options.mesh,
            out_specs=tuple(self.groups),
            axis_names=options.axis_names,
            check_vma=options.check_vma,
            **in_specs,
        )
        return mapped([self.leaves[i] for i in self.positions])

    def _on_flat_list(self, arrays: list[Any]) -> Any:
        leaves = self.leaves.copy()
        for i, array in zip(self.positions, arrays, strict=True):
            leaves[i] = array
        fun, args, kwargs = self.treedef.unflatten(leaves)
        out = _Side("out_specs", fun(*args, **kwargs), lambda path: format_path(path, root="out"))
        self.out_treedef = out.treedef
        specs = out.lay(self.options.out_specs, self.options)
        unknown = [spec for spec in specs if spec is not None and spec not in self.groups]
        if unknown:
            raise _Unknown(unknown)
        groups: list[list[Any]] = [[] for _ in self.groups]
        self.static, self.plan = [], []
        sources = [*groups, self.static]
        for leaf, spec in zip(out.leaves, specs, strict=True):
            group = len(groups) if spec is None else self.groups.index(spec)
            sources[group].append(leaf)
            self.plan.append((group, len(sources[group]) - 1))
        return tuple(groups)


def _is_none(node: Any) -> bool:
    return node is None


def _as_spec(entry: Any) -> PartitionSpec:
    return _REPLICATED if entry is None else entry


class _Side:
    """The arguments, or the output, of a mapped function.

    Args:
        option: the option that gives the partitions: `in_specs` or `out_specs`.
        value: the tree.
        path: writes a path into it as text.
        containers: nodes below the root of which `is_leaf` is not asked: not the user's.
    """

    def __init__(
        self,
        option: str,
        value: PyTree,
        path: Callable[[Any], str],
        containers: tuple[Any, ...] = (),
    ) -> None:
        self.option = option
        self.containers = (value, *containers) if containers else ()
        self.value = value
        self.path = path
        self.leaves, self.treedef = tree_flatten(value)

    def lay(self, specs: PyTree, options: _Options) -> list[PartitionSpec | None]:
        """The partition of each leaf, and None for what is no array."""
        entries, spec_treedef = tree_flatten(specs, is_leaf=_is_none)
        nodes, treedef = tree_flatten(self.value, is_leaf=self._is_leaf(options.is_leaf))
        # (Places, and not the nodes themselves: a specification may not go below a node.)
        places = treedef.unflatten(range(len(nodes)))
        try:
            subtrees = spec_treedef.flatten_up_to(places)
        except ValueError as error:
            raise StructureError(
                f"`{self.option}` must be a tree prefix, but it is not: of it and the value, "
                f"{first_difference(specs, places, _is_none)}."
            ) from error
        found: list[PartitionSpec | None] = []
        for entry, subtree in zip(entries, subtrees, strict=True):
            for place in tree_leaves(subtree):
                found += self._of_node(entry, nodes[place])
        self._check(found, options)
        return found

    def _is_leaf(self, is_leaf: Callable[[Any], bool] | None) -> Callable[[Any], bool] | None:
        if is_leaf is None or not self.containers:
            return is_leaf
        return lambda node: all(node is not own for own in self.containers) and is_leaf(node)

    def _of_node(self, entry: Any, node: Any) -> list[PartitionSpec | None]:
        """The partitions of a node's leaves. A node is a leaf, unless `is_leaf` says otherwise."""
        arrays = [is_array(leaf) for leaf in tree_leaves(node)]
        if not any(arrays):
            return [None] * len(arrays)
        spec = _as_spec(entry(node) if callable(entry) else entry)
        if not isinstance(spec, PartitionSpec):
            raise ArgumentTypeError(
                f"A function in `{self.option}` returned {spec!r} of type "
                f"`{type(spec).__qualname__}`. It must return a `PartitionSpec` or None."
            )
        return [spec if array else None for array in arrays]

    def _check(self, specs: list[PartitionSpec | None], options: _Options) -> None:
        """Checks shapes. JAX does so too, but by numbers in a flat list."""
        # The parts of an output are put together, whatever their sizes are.
        sizes = options.sizes() if self.option == "in_specs" else {}
        for number, (leaf, spec) in enumerate(zip(self.leaves, specs, strict=True)):
            if spec is None:
                continue
            problem = _misfit(leaf, spec, sizes)
            if problem is not None:
                at = self.path(tree_flatten_with_path(self.value)[0][number][0])
                raise ArgumentError(
                    f"`{self.option}` gives {spec} to `{at}`, an array of shape {leaf.shape}. "
                    f"{problem}"
                )


def _misfit(leaf: Any, spec: PartitionSpec, sizes: dict[Any, int]) -> str | None:
    """What is wrong with the partition of an array, if anything is."""
    if len(spec) > leaf.ndim:
        return f"The partition has {len(spec)} entries, and the array {leaf.ndim} dimensions."
    for axis, names in enumerate(spec):
        if names is None or names is PartitionSpec.UNCONSTRAINED:
            continue
        names = names if isinstance(names, tuple) else (names,)
        count = math.prod(sizes.get(name, 1) for name in names)
        if leaf.shape[axis] % count:
            return f"Dimension {axis} cannot be cut into {count} equal parts."
    return None


def _arrange(
    specs: Any, fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Brings `in_specs` into the form of `(args, kwargs)`."""
    if specs is None or isinstance(specs, PartitionSpec) or _is_function(specs):
        return (specs,) * len(args), dict.fromkeys(kwargs, specs)
    if type(specs) is dict:
        return _arrange_by_name(specs, fun, args, kwargs)
    if type(specs) in (tuple, list) and len(specs) == len(args):
        return tuple(specs), dict.fromkeys(kwargs)
    number = f" with {len(specs)} entries" if type(specs) in (tuple, list) else ""
    raise StructureError(
        f"`in_specs` must be one partition for all arguments, a tuple with an entry for each "
        f"positional argument, or a dict from names of arguments. `{name_of(fun)}` was called with "
        f"{len(args)} positional arguments, and `in_specs` is of type "
        f"`{type(specs).__qualname__}`{number}. Did you mean `in_specs=(spec,)`?"
    )


def _arrange_by_name(
    specs: dict[str, Any], fun: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    names = positional_parameters(fun)
    known = {*names, *kwargs}
    unknown = [name for name in specs if name not in known]
    if unknown:
        raise ArgumentError(
            f"`in_specs` speaks of {', '.join(f'`{name}`' for name in unknown)}, which "
            f"`{name_of(fun)}` is not called with. It has the parameters "
            f"{', '.join(f'`{name}`' for name in names) or 'none'}."
        )
    padded = [*names, *[None] * len(args)]
    return (
        tuple(specs.get(name) for name, _ in zip(padded, args, strict=False)),
        {name: specs.get(name) for name in kwargs},
    )


def _is_function(specs: Any) -> bool:
    return callable(specs) and jax.tree_util.all_leaves([specs])


def _check_specs(option: str, specs: Any) -> None:
    for path, entry in tree_flatten_with_path(specs)[0]:
        if not (isinstance(entry, PartitionSpec) or callable(entry)):
            raise ArgumentTypeError(
                f"`{option}` must consist of `PartitionSpec`s, None and functions that return one "
                f"of these; `{format_path(path, root=option)}` is {entry!r} of type "
                f"`{type(entry).__qualname__}`."
            )


@overload
def filter_shard_map(
    *,
    out_specs: Spec,
    in_specs: Spec = ...,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[Any] = frozenset(),
    check_vma: bool = True,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Callable[[Callable[_P, _T]], Callable[_P, _T]]: ...


@overload
def filter_shard_map(
    fun: Callable[_P, _T],
    *,
    out_specs: Spec,
    in_specs: Spec = ...,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[Any] = frozenset(),
    check_vma: bool = True,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Callable[_P, _T]: ...


def filter_shard_map(
    fun: Any = _unset,
    *,
    out_specs: Spec,
    in_specs: Spec = _unset,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[Any] = frozenset(),
    check_vma: bool = True,
    is_leaf: Callable[[Any], bool] | None = None,
) -> Any:
    """Makes a function work on the parts of its arguments, each on its device of a mesh.

    As `jax.shard_map`, for any PyTree. Only arrays are parted; everything else is held, and is
    returned as the function returns it. Arrays of `fun` itself, if it is a PyTree, are on each
    device.

    Args:
        fun: the function, of one part of each argument. Without it, the result is a decorator.
        out_specs: how the parts of the output are put together: a PyTree, which is a prefix of the
            output, of `PartitionSpec`s, of None for "the same on each device", and of functions
            from an array to one of these, which are called with a part. Such a function may cost a
            second trace.
        in_specs: how the arguments are parted: one such entry for all of them, or a tuple with a
            PyTree of entries for each positional argument, or a dict from names of arguments to
            such PyTrees. Arguments that it does not speak of are on each device. By default JAX
            takes the shardings that the arguments have, for which the axes of the mesh must be
            explicit.
        mesh: the mesh of devices. Default: the one that `jax.set_mesh` has set.
        axis_names: the axes of the mesh that are mapped over. Default: all.
        check_vma: whether JAX checks that outputs which are said to be the same on each device
            are so. Default: true.
        is_leaf: says of which nodes of the arguments and the output the entries speak as a whole:
            a function in `in_specs` or `out_specs` is called with such a node, and what it returns
            holds for all arrays in it. Default: of arrays alone.

    Returns:
        A function, which is a Module, of the same arguments.

    Raises:
        StructureError: if `in_specs` or `out_specs` is no prefix of the tree.
        ArgumentError: if a partition does not fit the shape of an array.
        ArgumentTypeError: if an option has a wrong type.

    !!! Example

        >>> import jax
        >>> import jax.numpy as jnp
        >>> from jax.sharding import NamedSharding, PartitionSpec
        >>> mesh = jax.make_mesh((4,), ("data",))
        >>> data = PartitionSpec("data")
        >>> @filter_shard_map(mesh=mesh, in_specs=(None, data), out_specs=data)
        ... def apply(model, x):
        ...     return model["activation"](model["weight"] * x)
        >>> x = jax.device_put(jnp.arange(4.0), NamedSharding(mesh, data))
        >>> print(apply({"activation": jnp.square, "weight": jnp.array(2.0)}, x))
        [ 0.  4. 16. 36.]
    """
    if in_specs is not _unset:
        _check_specs("in_specs", in_specs)
    _check_specs("out_specs", out_specs)
    options = _Options(mesh, in_specs, out_specs, axis_names, check_vma, is_leaf)

    def wrap(fun: Any) -> Any:
        check_callable(fun, "filter_shard_map")
        return _ShardMap(fun, Static(options))

    return wrap if fun is _unset else wrap(fun)
