"""Which entry of `in_axes` is for which argument of a call."""

import inspect
from collections.abc import Mapping
from typing import Any

from ecliptic.errors import ArgumentError, StructureError
from ecliptic.transform._axes import if_array, is_single
from ecliptic.transform._targets import Call
from ecliptic.transform._wrapper import name_of

_default = if_array(0)

_Parameter = inspect.Parameter
_POSITIONAL = (_Parameter.POSITIONAL_ONLY, _Parameter.POSITIONAL_OR_KEYWORD)


def arrange(in_axes: Any, call: Call) -> tuple[Call, Any]:
    """Brings `in_axes` into the form of `(call.args, call.kwargs)`.

    Returns:
        The call, in which arguments that `in_axes` speaks of but that were not given have their
        defaults; and the specification for it.
    """
    if is_single(in_axes):
        return call, in_axes
    if type(in_axes) is dict:
        return _by_name(in_axes, call)
    if type(in_axes) in (tuple, list):
        return _by_position(tuple(in_axes), call)
    if len(call.args) == 1 and not call.kwargs and type(in_axes) is type(call.args[0]):
        return call, ((in_axes,), {})
    raise StructureError(
        f"`in_axes` must be one axis for all arguments, a tuple with an entry for each positional "
        f"argument, or a dict from names of arguments; `{name_of(call.fun)}` was called with "
        f"{_count(call)}, and `in_axes` is of type `{type(in_axes).__name__}`.{_hint(call)}"
    )


def _count(call: Call) -> str:
    number = len(call.args) + len(call.kwargs)
    return f"{number} argument" + ("" if number == 1 else "s")


def _hint(call: Call) -> str:
    if len(call.args) + len(call.kwargs) != 1:
        return ""
    return " For a function of one argument, did you mean `in_axes=(spec,)`?"


class _Specs:
    """The specifications of the arguments of a call, as they are put together."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.args: list[Any] = [_default] * len(call.args)
        self.kwargs: dict[str, Any] = dict.fromkeys(call.kwargs, _default)
        self.added: dict[str, Any] = {}

    def add_default(self, parameter: inspect.Parameter, spec: Any) -> None:
        """Gives an argument that was not passed its default, mapped by `spec`."""
        if spec is None or parameter.default is _Parameter.empty:
            # A default is not mapped anyway; and of a missing argument, the function itself tells.
            return
        if parameter.kind is _Parameter.POSITIONAL_ONLY:
            raise ArgumentError(
                f"`in_axes` maps the positional-only argument `{parameter.name}` of "
                f"`{name_of(self.call.fun)}`, which was not given. Pass it, or write None for it."
            )
        self.added[parameter.name] = parameter.default
        self.kwargs[parameter.name] = spec

    def finish(self) -> tuple[Call, Any]:
        call = self.call
        if self.added:
            call = Call(call.fun, call.args, {**call.kwargs, **self.added})
        return call, (tuple(self.args), self.kwargs)


def _parameters(call: Call) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(call.fun).parameters
    except (TypeError, ValueError):
        return {}


def _by_position(entries: tuple[Any, ...], call: Call) -> tuple[Call, Any]:
    given = len(call.args)
    if len(entries) == given:
        return call, (entries, dict.fromkeys(call.kwargs, _default))
    specs = _Specs(call)
    specs.args[:] = entries[:given]
    rest = entries[given:]
    parameters = [p for p in _parameters(call).values() if p.kind is not _Parameter.VAR_POSITIONAL]
    beyond = parameters[given : given + len(rest)] if rest else []
    for parameter, spec in zip(beyond, rest, strict=False):
        if parameter.name in call.kwargs:
            specs.kwargs[parameter.name] = spec
        elif parameter.kind in _POSITIONAL:
            specs.add_default(parameter, spec)
        else:
            raise _wrong_number(entries, call)
    if len(entries) < given or len(beyond) < len(rest):
        raise _wrong_number(entries, call)
    return specs.finish()


def _wrong_number(entries: tuple[Any, ...], call: Call) -> StructureError:
    plural = "entry" if len(entries) == 1 else "entries"
    return StructureError(
        f"`in_axes` must be a tree prefix of the tuple of positional arguments, but it has "
        f"{len(entries)} {plural}, and `{name_of(call.fun)}` was called with {_count(call)}."
        f"{_hint(call)}"
    )


def _by_name(entries: dict[str, Any], call: Call) -> tuple[Call, Any]:
    specs = _Specs(call)
    parameters = _parameters(call)
    positions = {
        name: number for number, (name, p) in enumerate(parameters.items()) if p.kind in _POSITIONAL
    }
    unknown = []
    for name, spec in entries.items():
        if name in call.kwargs:
            specs.kwargs[name] = spec
        elif positions.get(name, len(call.args)) < len(call.args):
            specs.args[positions[name]] = spec
        elif name not in parameters:
            unknown.append(name)
        elif parameters[name].kind is _Parameter.VAR_POSITIONAL:
            specs.args[len(positions) :] = _each(spec, name, call.args[len(positions) :])
        elif parameters[name].kind is _Parameter.VAR_KEYWORD:
            for other in call.kwargs.keys() - parameters.keys():
                specs.kwargs[other] = spec[other] if type(spec) is dict else spec
        else:
            specs.add_default(parameters[name], spec)
    if unknown:
        raise ArgumentError(
            f"The following `in_axes` did not correspond to any argument: "
            f"{', '.join(f'`{name}`' for name in unknown)}. `{name_of(call.fun)}` has the "
            f"parameters {', '.join(f'`{name}`' for name in parameters) or 'none'}, and a dict "
            f"given as `in_axes` goes from their names to axes.{_hint(call)}"
        )
    return specs.finish()


def _each(spec: Any, name: str, values: tuple[Any, ...]) -> list[Any]:
    """The entries for the values of `*args`."""
    if type(spec) not in (tuple, list):
        return [spec] * len(values)
    if len(spec) != len(values):
        raise StructureError(
            f"`in_axes` has {len(spec)} entries for `*{name}`, of which there are {len(values)}."
        )
    return list(spec)
