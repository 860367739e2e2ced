"""Writes the pages of the reference before the site is read.

A public name without an entry ends the build.
"""

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

from tests.support import reference


def _write(app: Sphinx) -> None:
    try:
        reference.write()
    except reference.MissingEntryError as error:
        raise ExtensionError(f"The reference is not complete:\n{error}") from error


def setup(app: Sphinx) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
