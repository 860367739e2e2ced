"""`to_onnx`: a function as an ONNX model, for programs without JAX."""

from collections.abc import Callable
from typing import Any

import jax
import jax.tree_util as jtu

from ecliptic.errors import LeafError, MissingPackageError
from ecliptic.tree import format_path, is_array
from ecliptic.tree._predicates import has_shape


def to_onnx(fn: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Exports a function, with all that it closes over, as an ONNX model.

    The conversion is that of [jax2onnx](https://pypi.org/project/jax2onnx/), an optional package.
    Weights of a model become constants of the exported one, so `fn` is usually the model itself, in
    inference mode, or a function that calls it.

    Args:
        fn: the function; may be a Module.
        **options: those of `jax2onnx.to_onnx`: `opset`, `model_name`, `enable_double_precision` ...

    Returns:
        A function that takes example arguments and returns an `onnx.ModelProto`. An example of an
        array may be a `jax.ShapeDtypeStruct`; its shape may have names of dimensions in it, from
        `jax.export.symbolic_shape`. The inputs of the model are the arrays in the arguments, in the
        order of leaves and with their paths as names; whatever else is in there is fixed. Its
        outputs are the arrays in what `fn` returns.

    Raises:
        MissingPackageError: if jax2onnx is not installed.
        LeafError: in a call, if the arguments hold no array.

    !!! Example

        >>> import ecliptic as ec
        >>> import jax, jax.numpy as jnp
        >>> from ecliptic.serialise import to_onnx
        >>> mlp = ec.nn.MLP(3, 2, width_size=4, depth=1, key=jax.random.key(0))
        >>> def export(path, batch=8):  # with jax2onnx installed
        ...     example = jax.ShapeDtypeStruct((batch, 3), jnp.float32)
        ...     model = to_onnx(jax.vmap(ec.nn.inference_mode(mlp)))(example)
        ...     path.write_bytes(model.SerializeToString())
    """

    def export(*args: Any, **kwargs: Any) -> Any:
        convert = _converter()
        flat, treedef = jtu.tree_flatten_with_path((args, kwargs))
        leaves = [leaf for _, leaf in flat]
        positions = [i for i, leaf in enumerate(leaves) if has_shape(leaf)]
        if not positions:
            raise LeafError(
                "`to_onnx`: there is no array in the example arguments, so that the model would "
                "have no input. Give the arrays that may change from call to call, or a "
                "`jax.ShapeDtypeStruct` in place of each."
            )

        def run(*arrays: Any) -> tuple[Any, ...]:
            filled = list(leaves)
            for position, array in zip(positions, arrays, strict=True):
                filled[position] = array
            args, kwargs = treedef.unflatten(filled)
            return tuple(x for x in jtu.tree_leaves(fn(*args, **kwargs)) if is_array(x))

        inputs = [jax.ShapeDtypeStruct(leaves[i].shape, leaves[i].dtype) for i in positions]
        names = [_name(flat[i][0]) for i in positions]
        return convert(run, inputs=inputs, **{"input_names": names, **options})

    return export


def _name(path: Any) -> str:
    _, key, *rest = path
    # Keyword arguments are known by their names, positional ones by their numbers.
    root = key.key if isinstance(key, jtu.DictKey) else f"arg{key.idx}"
    return format_path(tuple(rest), root)


def _converter() -> Callable[..., Any]:
    try:
        import jax2onnx  # noqa: PLC0415  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise MissingPackageError(
            "`to_onnx` needs the package jax2onnx: `pip install jax2onnx`."
        ) from error
    return jax2onnx.to_onnx
