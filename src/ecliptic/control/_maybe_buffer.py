"""`MaybeBuffer`: the annotation of what is an array outside of a loop, and a buffer inside."""

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ecliptic.control._loops import Buffer

_T = TypeVar("_T")


class _MaybeBufferOf(type):
    """`MaybeBuffer[T]`: a class for the sake of `isinstance`."""

    of: Any

    def __instancecheck__(cls, instance: object) -> bool:
        if isinstance(instance, Buffer):
            instance = instance.unwrap()
        return isinstance(instance, cls.of)


if TYPE_CHECKING:
    MaybeBuffer: TypeAlias = _T | Buffer

else:

    class MaybeBuffer:
        """Annotation `MaybeBuffer[T]`: a `T`, or a loop's [`Buffer`][] of one.

        In the body of a loop with `buffers=`, a part of the carry is a buffer. A Module with that
        part as a field is annotated with this, and passes checks at run time (those of `isinstance`
        and of jaxtyping) inside and outside of the loop.

        !!! Example

            >>> import jax
            >>> import jax.numpy as jnp
            >>> from ecliptic.control import Buffer, MaybeBuffer
            >>> array = jnp.zeros(3)
            >>> isinstance(array, MaybeBuffer[jax.Array])
            True
            >>> isinstance(Buffer(array), MaybeBuffer[jax.Array])
            True
            >>> isinstance(3, MaybeBuffer[jax.Array])
            False
        """

        def __class_getitem__(cls, item: Any) -> Any:
            # Named by its argument rather than shown by a `__repr__`: in a union, `|`, Python shows
            # a class by its name, and beartype refuses one that is shown in another way by itself.
            name = f"MaybeBuffer[{getattr(item, '__name__', item)}]"
            return _MaybeBufferOf(name, (), {"of": item})
