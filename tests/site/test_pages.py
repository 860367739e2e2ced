"""The site in a browser, opened from its folder: pages, search, copying, colours, widths."""

import pytest

from tests.site.conftest import SITE, clipboard

# One of each kind.
KINDS = [
    "index.html",
    "tutorials/first-model.html",
    "guides/looking-at-models.html",
    "guides/performance.html",
    "errors/index.html",
    "errors/trees.html",
    "reference/index.html",
    "reference/derivatives.html",
    "gallery/index.html",
    "gallery/digits.html",
    "design/0004-compiled-calls.html",
    "faq.html",
    "changelog.html",
    "genindex.html",
]
LOADED = "[...document.images].filter(i => !(i.complete && i.naturalWidth > 0)).map(i => i.src)"
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
COLOUR = "getComputedStyle(document.body).backgroundColor"


def brightness(page) -> float:
    """Of the background: 0 is black, 255 is white."""
    red, green, blue = page.evaluate(COLOUR).strip("rgba()").split(",")[:3]
    return (float(red) + float(green) + float(blue)) / 3


@pytest.mark.parametrize("name", KINDS)
def test_a_page_opens_with_all_its_pictures(watched, name):
    page = watched.open(name)
    assert page.locator("article h1").first.inner_text()
    for image in page.locator("article img").all():
        image.scroll_into_view_if_needed()
    assert page.evaluate(LOADED) == []
    page.evaluate("window.scrollTo(0, 0)")
    watched.shoot(name.replace("/", "-").removesuffix(".html"))


def test_the_front_page_has_a_program_and_three_pictures(watched):
    page = watched.open("index.html")
    program = page.locator("div.highlight-python pre").first.inner_text()
    assert "import ecliptic" in program
    assert page.locator(".pictures img").count() == 3
    watched.shoot("front-page-whole", whole=True)


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("filter_scan", "reference/control-flow.html"),
        ("Attempted to use old state", "errors/layers-and-states.html"),
        ("checkpoint", "guides/serialisation.html"),
    ],
)
def test_the_search_finds(watched, words, place):
    page = watched.open("index.html")
    page.locator("input.sidebar-search").fill(words)
    page.locator("input.sidebar-search").press("Enter")
    page.get_by_text("Search finished").wait_for()
    found = [link.get_attribute("href") for link in page.locator("#search-results li a").all()]
    assert any(place in (address or "") for address in found), found
    watched.shoot(f"search-{words.split()[0]}")


def test_a_name_that_is_searched_for_leads_to_its_entry(watched):
    page = watched.open("index.html")
    page.locator("input.sidebar-search").fill("filter_value_and_grad")
    page.locator("input.sidebar-search").press("Enter")
    page.locator("#search-results li a", has_text="filter_value_and_grad").first.click()
    page.locator("dt[id='ecliptic.filter_value_and_grad']").wait_for(state="visible")


def test_the_button_copies_a_program(watched):
    page = watched.open("index.html")
    block = page.locator("div.highlight-python").first
    block.hover()
    block.locator("button.copybtn").click()
    page.wait_for_selector("button.copybtn.success")
    assert clipboard(page).strip() == block.locator("pre").inner_text().strip()


def test_the_button_leaves_prompts_and_answers_out(watched):
    page = watched.open("reference/trees.html")
    entry = page.locator("dl", has=page.locator("dt[id='ecliptic.is_array']")).last
    entry.locator("div.highlight").first.hover()
    entry.locator("button.copybtn").first.click()
    page.wait_for_selector("button.copybtn.success")
    copied = clipboard(page)
    assert copied
    assert ">>>" not in copied
    assert "True" not in copied


@pytest.mark.parametrize("options", [{"color_scheme": "dark"}])
def test_a_dark_desk_gets_a_dark_page(watched):
    page = watched.open("index.html")
    assert brightness(page) < 60
    watched.shoot("front-page-dark")
    watched.open("guides/performance.html")
    watched.shoot("guide-dark")


def test_a_button_goes_from_light_to_dark_and_back(watched):
    page = watched.open("index.html")
    assert brightness(page) > 200
    seen = []
    for _ in range(3):
        page.locator(".theme-toggle:visible").first.click()
        seen.append(brightness(page) < 60)
    assert True in seen
    assert False in seen


NARROW = {"viewport": {"width": 360, "height": 740}}


@pytest.mark.parametrize("options", [NARROW], ids=["narrow"])
@pytest.mark.parametrize("name", KINDS)
def test_a_narrow_window_does_not_scroll_sideways(watched, name):
    page = watched.open(name)
    assert page.evaluate(TOO_WIDE) <= 0
    watched.shoot(f"narrow-{name.replace('/', '-').removesuffix('.html')}")


@pytest.mark.parametrize("options", [NARROW], ids=["narrow"])
def test_a_narrow_window_has_a_menu(watched):
    page = watched.open("index.html")
    link = page.locator(".sidebar-tree a", has_text="Guides").first
    assert not link.is_visible() or link.bounding_box()["x"] < 0
    page.locator("label.nav-overlay-icon").click()
    page.wait_for_timeout(500)
    assert link.bounding_box()["x"] >= 0
    watched.shoot("narrow-menu")
    link.click()
    page.wait_for_url("**/guides/index.html")


def test_a_public_name_in_a_text_leads_to_its_entry(watched):
    page = watched.open("guides/performance.html")
    page.locator("article a", has_text="filter_checkpoint").first.click()
    page.wait_for_url("**/reference/derivatives.html#ecliptic.filter_checkpoint")


def test_from_the_front_page_a_newcomer_gets_to_a_trained_model(watched):
    page = watched.open("index.html")
    page.locator("article a", has_text="A first model").first.click()
    page.wait_for_url("**/tutorials/first-model.html")
    assert "test accuracy" in page.locator("article").inner_text()


def test_the_site_is_built():
    assert (SITE / "index.html").exists(), f"no site in {SITE}: `make docs` builds it"
