"""`tree_html`, and Modules in `treescope`."""

import base64
import re
import zlib

import jax
import jax.numpy as jnp
import treescope

import ecliptic as ec
from ecliptic import nn
from ecliptic.view import tree_html

LAYER = nn.Linear(2, 3, key=jax.random.key(0))


def content(page):
    """What a browser makes of the page: its parts are compressed."""
    parts = re.findall(r'type="application/octet-stream"\s*>(eN[\w+/=]+)<', str(page))
    return "".join(zlib.decompress(base64.b64decode(part)).decode() for part in parts)


def paths(page):
    return set(re.findall(r'data-copy=\\?"([^"\\]*)\\?"', content(page)))


def test_treescope_marks_static_fields():
    text = treescope.render_to_text(LAYER)
    names = ("weight", "bias", "in_features", "use_bias")
    assert [f"static {name}=" in text for name in names] == [False, False, True, True]
    assert all(f"{name}=" in text for name in names)


def test_treescope_writes_python_in_its_other_mode():
    text = treescope.render_to_text(ec.Static("a"), roundtrip_mode=True)
    assert "static " not in text
    assert "_held='a'" in text


def test_treescope_shows_what_a_static_function_holds():
    assert "static _held=<" in treescope.render_to_text(ec.StaticFunction(max))


def test_treescope_shows_an_instance_with_unset_fields():
    class Half(ec.Module):
        a: int
        b: int

        def __init__(self):
            self.a = 1
            shown.append(treescope.render_to_text(self))
            self.b = 2

    shown = []
    Half()
    assert shown == ["Half(a=1)"]


def test_a_page_has_a_path_to_copy_for_each_part():
    assert {"m['l']", "m['l'].weight", "m['l'].in_features"} <= paths(
        tree_html({"l": LAYER}, root="m")
    )


def test_arrays_are_drawn_on_request():
    drawn, described = (content(tree_html(LAYER, arrays=arrays)) for arrays in (True, False))
    assert "arrayviz" in drawn
    assert "arrayviz" not in described


def test_a_page_asks_nothing_of_a_network():
    page = tree_html({"l": LAYER, "x": jnp.ones((4, 4))})
    assert not re.search(r"https?://|url\((?!data:)", str(page) + content(page))


def test_a_page_is_saved_as_a_whole(tmp_path):
    page = tree_html([1], root="<a>")
    page.save(tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert "<title>&lt;a&gt;</title>" in text
    assert str(page) in text
    assert page._repr_html_() == str(page)


def test_settings_of_treescope_are_as_before():
    before = treescope.active_autovisualizer.get()
    tree_html(LAYER)
    assert treescope.active_autovisualizer.get() is before


def test_treescope_shows_a_state_by_the_places_of_its_values():
    index, state = nn.make_with_state(nn.StateIndex)(jnp.zeros(()))
    new = state.set(index, jnp.ones(()))
    text = treescope.render_to_text([state, new])
    assert "State(~old~)" in text
    assert "State({'StateIndex': <jax.Array(1., dtype=float32)>})" in text
