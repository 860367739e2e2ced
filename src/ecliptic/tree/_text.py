"""`str2jax`: a string that is a PyTree without leaves."""

import jax

from ecliptic.errors import LeafError


@jax.tree_util.register_static
class Text(str):
    """A string that JAX takes for structure. `str2jax` makes one."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def str2jax(msg: str) -> Text:
    """Makes a string that can be wherever JAX wants arrays: it is a PyTree without leaves.

    A plain string is a leaf, which `jax.jit`, `jax.lax.scan` and their like refuse. This one goes
    into and out of them as part of the structure: a program is traced for each string anew.

    Args:
        msg: the string.

    Returns:
        A string: equal to `msg`, with its hash and with all of its methods.

    Raises:
        LeafError: if `msg` is no string.

    !!! Example

        >>> import jax
        >>> from ecliptic.tree import str2jax
        >>> @jax.jit
        ... def shout(name):
        ...     return str2jax(name.upper())
        >>> print(shout(str2jax("hello")))
        HELLO
    """
    if not isinstance(msg, str):
        raise LeafError(
            f"`str2jax` takes a string, and got {msg!r} of type `{type(msg).__qualname__}`. "
            "`ecliptic.Static` does the same for any value."
        )
    return Text(msg)
