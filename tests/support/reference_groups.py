"""The groups of the reference: what is for what.

A group names places: packages of `ecliptic`, or files in them. A name belongs to the group with
the longest place that fits, so that a new file of a known package has a group from the start.
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Group:
    """A page of the reference."""

    slug: str
    title: str
    summary: str
    places: tuple[str, ...]


def _files(package: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{package}.{name}" for name in names)


GROUPS = (
    Group("modules", "Modules", "Classes whose instances are trees.", ("module",)),
    Group("trees", "PyTrees", "Selecting, replacing, comparing and printing.", ("tree",)),
    Group(
        "compilation",
        "Compilation and tracing",
        "Functions of any PyTree as compiled programs, and what is known without running them.",
        ("transform",),
    ),
    Group(
        "derivatives",
        "Derivatives",
        "Gradients, Jacobians, tangents, and rules of one's own.",
        _files(
            "transform",
            "_grad",
            "_jvp",
            "_vjp",
            "_linearize",
            "_jacobian",
            "_custom_jvp",
            "_custom_vjp",
            "_checkpoint",
        ),
    ),
    Group(
        "batches-and-devices",
        "Batches and devices",
        "One function over many elements, on one device or several.",
        (*_files("transform", "_vmap", "_axes", "_pmap", "_shard", "_shard_map"), "shard"),
    ),
    Group("control-flow", "Control flow", "Loops and branches that carry any tree.", ("control",)),
    Group(
        "runtime-checks",
        "Runtime checks",
        "Errors out of compiled programs, and enumerations that go into them.",
        ("runtime",),
    ),
    Group(
        "layers", "Layers: linear and containers", "What networks are put together from.", ("nn",)
    ),
    Group(
        "layers-convolution",
        "Layers: convolution and pooling",
        "Layers that look at neighbourhoods.",
        _files("nn", "_conv", "_conv_transpose", "_pool", "_adaptive_pool"),
    ),
    Group(
        "layers-normalisation",
        "Layers: normalisation",
        "Layers that keep numbers in bounds.",
        _files(
            "nn",
            "_batch_norm",
            "_group_norm",
            "_layer_norm",
            "_rms_norm",
            "_spectral_norm",
            "_weight_norm",
        ),
    ),
    Group(
        "layers-sequences",
        "Layers: attention, embedding and recurrence",
        "Layers for sequences.",
        _files("nn", "_attention", "_multihead", "_embedding", "_rotary", "_recurrent"),
    ),
    Group("state", "State", "What changes from call to call.", ("state", "nn._stateful")),
    Group("optimisers", "Optimisers", "From gradients to a new model.", ("optim",)),
    Group("saving", "Saving and loading", "Trees in files.", ("serialise", "module._exchange")),
    Group(
        "views",
        "Looking at models",
        "Tables, differences, trees to unfold, plots.",
        ("view", *_files("tree", "_differences", "_distance")),
    ),
    Group(
        "debugging",
        "Debugging",
        "Why it is traced again, where a NaN comes from, what is wrong with a model.",
        ("debug", "transform._baked"),
    ),
    Group("testing", "Testing", "Help for tests.", ("testing",)),
    Group(
        "library-authors",
        "For library authors",
        "Primitives, barriers, and values behind `jax.vmap`.",
        ("primitive", "barrier"),
    ),
    Group(
        "equinox",
        "Names of Equinox",
        "What only programs that were written for Equinox use.",
        ("compat",),
    ),
    Group(
        "errors",
        "Errors and warnings",
        "Every class, with its built-in counterpart. [The pages of errors](../errors/index.md) say "
        "what to do about each message.",
        ("errors",),
    ),
)

# Public values that cannot have docstrings.
CONSTANTS = {
    "primitive.primitive_finalisations": (
        "What [`finalise_jaxpr`][] replaces each primitive with: a dictionary from primitives to "
        "functions. [`register_impl_finalisation`][] adds to it."
    ),
}
