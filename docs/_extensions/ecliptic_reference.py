"""Writes the pages of the reference before the site is read, and leads to them from everywhere.

A public name without an entry ends the build. A public name that is written as code in the text of
any page becomes a link to its entry.
"""

import functools
import re

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from tests.support import reference

# (`filter` or `save` alone may as well be an argument; `ec.filter` is not.)
_NAME = re.compile(r"(?:[a-z]+\.)*(?:[A-Z]\w+|[a-z]+_\w+)|ec\.\w+|ecliptic\.\w+")
_NO_PLACE = (nodes.title, nodes.reference, addnodes.pending_xref, addnodes.desc_signature)


def _write(app: Sphinx) -> None:
    try:
        reference.write()
    except reference.MissingEntryError as error:
        raise ExtensionError(f"The reference is not complete:\n{error}") from error


def _link(app: Sphinx, doctree: nodes.document) -> None:
    known = _anchors()
    for literal in list(doctree.findall(nodes.literal)):
        text = literal.astext().removesuffix("()")
        anchor = known.get(text) if _NAME.fullmatch(text) else None
        if anchor is None or _is_out_of_place(literal, anchor):
            continue
        options = {"refdomain": "py", "reftype": "obj", "refexplicit": True, "refwarn": True}
        link = addnodes.pending_xref("", refdoc=app.env.docname, reftarget=anchor, **options)
        literal.replace_self(link)
        link += literal


@functools.cache
def _anchors() -> dict[str, str]:
    """What an entry may be called in a text: `Linear`, `nn.Linear`, `ec.nn.Linear`, and in full."""
    found = {}
    for entry in reference.entries():
        short = entry.anchor.removeprefix("ecliptic.")
        for written in (short.rpartition(".")[2], short, f"ec.{short}", entry.anchor):
            found[written] = entry.anchor
    return found


def _is_out_of_place(node: nodes.Node, anchor: str) -> bool:
    """Whether it is in a heading, in a link, or in the entry that it names."""
    while node.parent is not None:
        node = node.parent
        if isinstance(node, _NO_PLACE):
            return True
        if isinstance(node, addnodes.desc) and anchor in node.children[0].get("ids", ()):
            return True
    return False


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", _write)
    app.connect("doctree-read", _link)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
