"""Each page of the site, as text: its links lead somewhere, and nothing comes from a network."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from tests.site.conftest import SITE


class Page(HTMLParser):
    """What a page links to, what it loads, and the places in it that links may lead to."""

    def __init__(self, path: Path):
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.places |= {value for name in ("id", "name") if (value := found.get(name))}
        if tag == "a" and (link := found.get("href")):
            self.links.append(link)
        elif tag in ("script", "img", "iframe", "source") and (source := found.get("src")):
            self.loads.append(source)
        elif tag == "link" and found.get("rel") in ("stylesheet", "icon", "preload"):
            self.loads.append(found.get("href") or "")


@pytest.fixture(scope="module")
def pages() -> dict[Path, Page]:
    found = {
        path.resolve(): Page(path) for path in SITE.rglob("*.html") if "_views" not in path.parts
    }
    assert found
    return found


def test_nothing_is_loaded_from_a_network(pages):
    outside = {
        (path.name, source)
        for path, page in pages.items()
        for source in page.loads
        if urlsplit(source).scheme not in ("", "data") or source.startswith("//")
    }
    assert outside == set()


def test_what_is_loaded_is_there(pages):
    lost = {
        (path.name, source)
        for path, page in pages.items()
        for source in page.loads
        if not source.startswith("data:")
        and not (path.parent / unquote(urlsplit(source).path)).exists()
    }
    assert lost == set()


def test_each_link_leads_to_a_page_and_a_place_in_it(pages):
    lost = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "mailto"):
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if not target.exists():
                lost.append((path.name, link))
            elif parts.fragment and target in pages:
                if unquote(parts.fragment) not in pages[target].places:
                    lost.append((path.name, link))
    assert lost == []


def test_style_sheets_ask_for_nothing_outside():
    sheets = list(SITE.rglob("*.css"))
    assert sheets
    assert [path.name for path in sheets if "url(http" in path.read_text(encoding="utf-8")] == []
