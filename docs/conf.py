"""How the site is built: `make docs`, or `sphinx-build -W docs out/docs`.

Nothing in it comes from a network, while it is built or while it is read: it opens from a folder.
"""

import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
sys.path[:0] = [str(HERE / "_extensions"), str(ROOT / "src"), str(ROOT)]

project = "Ecliptic"
author = "The Ecliptic authors"
copyright = author
version = release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]

extensions = ["myst_parser", "sphinx_copybutton", "ecliptic_reference", "ecliptic_gallery"]
exclude_patterns = ["_extensions", "_pictures"]
source_suffix = {".md": "markdown"}
# A reference that leads nowhere is a warning, and a warning ends the build.
nitpicky = True

# ------------------------------------------------------------------------------ Markdown

myst_enable_extensions = ["attrs_block", "colon_fence", "deflist"]
myst_heading_anchors = 3

# -------------------------------------------------------------------------------- Python

add_module_names = True
python_maximum_signature_line_length = 88
toc_object_entries_show_parents = "hide"
highlight_language = "text"

# ---------------------------------------------------------------------------------- HTML

html_theme = "furo"
html_title = f"Ecliptic {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False
html_use_index = True
# The summaries are fetched, which a browser refuses for pages that are opened from a folder.
html_show_search_summary = False
html_theme_options = {"navigation_with_keys": True, "top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "monokai"

# The prompts of Python and of a shell are not copied, nor is what Python answers.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
