"""A browser without a window, and the site that is opened in it, from its folder."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, sync_playwright

from tests.support.project import ROOT

SITE = Path(os.environ.get("SITE", ROOT / "out" / "docs"))
SCREENSHOTS = Path(os.environ.get("SCREENSHOTS", ROOT / "out" / "screenshots"))
_NAMES = ("chromium", "chromium-browser", "google-chrome")
# What a page may ask for: files beside it, and what it holds itself.
_LOCAL = ("file:", "data:", "blob:", "about:")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Chromium, of the distribution."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)
    assert found, "no browser: install Debian's package `chromium`, or set CHROMIUM to one"
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield started
        started.close()


class Watched:
    """A page that is opened from the folder, and what was wrong with it."""

    def __init__(self, context: BrowserContext):
        self.page: Page = context.new_page()
        self.wrong: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.wrong.append(f"error: {error}"))
        self.page.on("request", self._ask)
        self.page.on("requestfailed", lambda r: self.wrong.append(f"failed: {r.url[:200]}"))

    def open(self, name: str) -> Page:
        """Open a page of the site."""
        self.page.goto((SITE / name.partition("#")[0]).as_uri() + "".join(name.partition("#")[1:]))
        return self.page

    def shoot(self, name: str, whole: bool = False) -> None:
        """Leave a picture, to be looked at."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=whole)

    def _hear(self, message) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"console: {message.text}")

    def _ask(self, request: Request) -> None:
        if not request.url.startswith(_LOCAL):
            self.wrong.append(f"asks the network: {request.url[:200]}")


@pytest.fixture
def options() -> dict:
    """How the window is: tests replace it."""
    return {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"}


@pytest.fixture
def watched(browser, options) -> Iterator[Watched]:
    """A window; at the end of the test, nothing may have been wrong in it."""
    context = browser.new_context(**options)
    context.set_default_timeout(20_000)
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    found = Watched(context)
    yield found
    context.close()
    assert found.wrong == []


def clipboard(page: Page) -> str:
    """What was copied."""
    return page.evaluate("navigator.clipboard.readText()")
