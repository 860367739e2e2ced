"""`tree_html`: any tree as a page on which it can be unfolded."""

import os
import pathlib
from html import escape
from typing import Any

from jaxtyping import PyTree

from ecliptic.errors import MissingPackageError

# How much is unfolded at first.
_LINES = 60
_WIDTH = 80


class TreeHTML:
    """What [`tree_html`][] returns: shown by a notebook; `str` gives the HTML, `save` a file.

    !!! Example

        >>> from ecliptic.view import tree_html
        >>> page = tree_html({"a": [1, 2]})
        >>> "<script>" in str(page)
        True
    """

    def __init__(self, html: str, title: str) -> None:
        self._html = html
        self._title = title

    def __str__(self) -> str:
        return self._html

    def __repr__(self) -> str:
        return f"<TreeHTML of `{self._title}`, {len(self._html):,} characters>"

    def _repr_html_(self) -> str:
        return self._html

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a page that a browser shows, without a network.

        Args:
            path: the file, for instance `model.html`.
        """
        page = (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f"<title>{escape(self._title)}</title></head>\n<body>{self._html}</body></html>\n"
        )
        pathlib.Path(path).write_text(page, encoding="utf-8")


def tree_html(tree: PyTree, *, root: str = "model", arrays: bool = True) -> TreeHTML:
    """Show a PyTree as a page of HTML: to unfold, with arrays as pictures and paths to copy.

    The page is made by the package `treescope`. It knows what Modules are: static fields are marked
    as such. `treescope.show(tree)` shows the same, and after `treescope.basic_interactive_setup()`
    a notebook shows all values so; `treescope` has the settings.

    Args:
        tree: any PyTree, and indeed any object.
        root: the name of the tree in the paths that are copied.
        arrays: whether arrays are drawn, for which they are copied from their devices. Without,
            they are described by shape, dtype, mean and range.

    Returns:
        An object that a notebook shows. `save` writes it to a file, as a whole page.

    Raises:
        MissingPackageError: `treescope` is not installed.

    !!! Example

        >>> import jax
        >>> from ecliptic import nn
        >>> from ecliptic.view import tree_html
        >>> page = tree_html(nn.Linear(2, 3, key=jax.random.key(0)))
        >>> page.save("linear.html")  # doctest: +SKIP
        >>> page
        <TreeHTML of `model`, ... characters>
    """
    treescope = _import_treescope()
    from treescope import lowering, rendering_parts  # noqa: PLC0415

    visualizer = treescope.ArrayAutovisualizer() if arrays else None
    with treescope.active_autovisualizer.set_scoped(visualizer):
        shown = treescope.active_renderer.get().to_foldable_representation(
            tree, ignore_exceptions=True, root_keypath=root
        )
        line = rendering_parts.build_full_line_with_annotations(shown)
        with treescope.using_expansion_strategy(max_height=_LINES, target_width=_WIDTH):
            treescope.active_expansion_strategy.get()(line)
        html = lowering.render_to_html_as_root(line, compressed=True)
    return TreeHTML(html, root)


def _import_treescope() -> Any:
    try:
        import treescope  # noqa: PLC0415
    except ImportError as error:
        raise MissingPackageError(
            "`tree_html` needs the package `treescope`, which is not installed. Install it "
            "(`pip install treescope`, or `ecliptic[view]`), or print the tree, or use "
            "`ecliptic.tree_summary`."
        ) from error
    return treescope
