"""How `treescope` shows Modules. It is imported when it asks, and not before."""

import dataclasses
from typing import Any

from ecliptic.module._field import is_static


def treescope_repr(module: Any, path: str | None, subtree_renderer: Any) -> Any:
    """What `__treescope_repr__` returns for a Module: its fields, with the static ones marked.

    Args:
        module: the Module.
        path: where it is in what is shown.
        subtree_renderer: called with what is in a field, and the path to it.
    """
    from treescope import rendering_parts as parts  # noqa: PLC0415

    declared = [f for f in dataclasses.fields(module) if hasattr(module, f.name)]
    static = {f.name for f in declared if is_static(f)}

    def style(name: str) -> Any:
        if name not in static:
            return parts.text(name)
        marked = parts.siblings(parts.comment_color(parts.text("static ")), name)
        # In the other mode, what is shown is to be Python.
        return parts.roundtrip_condition(roundtrip=parts.text(name), not_roundtrip=marked)

    return parts.build_foldable_tree_node_from_children(
        prefix=parts.siblings(parts.maybe_qualified_type_name(type(module)), "("),
        children=parts.build_field_children(
            module,
            path=path,
            subtree_renderer=subtree_renderer,
            fields_or_attribute_names=declared,
            attr_style_fn=style,
        ),
        suffix=")",
        path=path,
    )
