"""How an example becomes a page."""

import sys

import pytest

from tests.support.project import ROOT

sys.path.insert(0, str(ROOT / "docs" / "_extensions"))

import ecliptic_gallery as gallery
from sphinx.errors import ExtensionError

SCRIPT = '''"""Draw a point.

It is a small one.
"""

# %%
import os
from pathlib import Path  # noqa: E402

# %% [markdown]
# ## The point
#
# Here it is.

# %%
# Not prose.
Path(os.environ["GALLERY_OUT"], "point.png").write_bytes(b"")
print("\\x1b[1mdrawn\\x1b[0m", Path(os.environ["GALLERY_OUT"], "point.png"))
print(os.environ.get("SMOKE"))
'''


@pytest.fixture
def script(tmp_path):
    (tmp_path / "one_point.py").write_text(SCRIPT, encoding="utf-8")
    return tmp_path / "one_point.py"


def test_the_parts_of_an_example(script):
    example = gallery.read(script)
    assert (example.title, example.summary) == ("One point", "Draw a point.")
    assert example.cells[0] == ("", "import os\nfrom pathlib import Path")
    assert example.cells[1] == ("## The point\n\nHere it is.", "")
    assert example.cells[2][1].startswith("# Not prose.")


@pytest.mark.parametrize("smoke", [None, "1"])
def test_an_example_is_run_in_full_unless_the_build_is_a_smoke_test(
    script, tmp_path, monkeypatch, smoke
):
    monkeypatch.delenv("SMOKE", raising=False)
    if smoke:
        monkeypatch.setenv("SMOKE", smoke)
    assert gallery.run(script, tmp_path / "kept").printed.endswith(f"\n{smoke}")


def test_what_an_example_prints_and_leaves(script, tmp_path, monkeypatch):
    monkeypatch.setenv("SMOKE", "1")
    result = gallery.run(script, tmp_path / "kept")
    assert result == gallery.Result("drawn point.png\n1", ("point.png",))
    assert (tmp_path / "kept" / "point.png").exists()
    page = gallery.page(gallery.read(script), result)
    assert "![One point: point](one_point/point.png)" in page
    assert "```text\ndrawn point.png\n1\n```" in page


def test_an_example_that_fails_ends_the_build(tmp_path):
    (tmp_path / "bad.py").write_text('"""Bad."""\nraise ValueError("so it is")\n')
    with pytest.raises(ExtensionError, match="bad.py failed:(?s:.*)so it is"):
        gallery.run(tmp_path / "bad.py", tmp_path / "kept")
