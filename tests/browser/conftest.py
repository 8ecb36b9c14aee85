"""Give the tests a real headless Chromium, or skip them with a warning that is hard to miss."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

from demur import Threshold
from support.reports import RUNS, write
from support.waiting import PATIENCE

T = TypeVar("T")

_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = (
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass
class Seen:
    """Hold what a page did besides showing itself."""

    errors: list[str] = field(default_factory=list)
    """The errors and warnings on the page's console, and exceptions that nothing caught."""
    requests: list[str] = field(default_factory=list)
    """The addresses that the page requested, including its own."""


class Chromium:
    """Run a browser in a thread of its own.

    Playwright's sync API keeps an event loop running in the thread that started it. pytest-asyncio
    could run no loop in that thread.
    """

    def __init__(self, executable: str) -> None:
        from playwright.sync_api import sync_playwright

        self._thread = ThreadPoolExecutor(1, thread_name_prefix="chromium")
        # Chromium's own sandbox does not run as root, and containers often run as root.
        root = ("--no-sandbox",) if os.geteuid() == 0 else ()

        def start() -> tuple[Any, Any]:
            playwright = sync_playwright().start()
            try:
                return playwright, playwright.chromium.launch(
                    executable_path=executable, args=[*_ARGUMENTS, *root]
                )
            except BaseException:
                playwright.stop()
                raise

        self._playwright, self._browser = self._thread.submit(start).result()

    def __call__(self, steps: Callable[[Any, Seen], T], **options: Any) -> T:
        """Run `steps(page, seen)` on a fresh page in the browser's thread, and return its result.

        `page` is a `Page` of Playwright's sync API, and `seen` grows while the page acts. An
        exception in `steps` is raised here. `options` are those of `Browser.new_context`, such as
        `viewport`, `color_scheme` or `java_script_enabled`.
        """

        def run() -> T:
            context = self._browser.new_context(**options)
            context.set_default_timeout(PATIENCE * 1000)
            try:
                seen = Seen()
                page = context.new_page()
                page.on(
                    "console",
                    lambda said: (
                        seen.errors.append(said.text) if said.type in ("error", "warning") else None
                    ),
                )
                page.on("pageerror", lambda error: seen.errors.append(str(error)))
                page.on("request", lambda request: seen.requests.append(request.url))
                return steps(page, seen)
            finally:
                context.close()

        return self._thread.submit(run).result()

    def close(self) -> None:
        """End the browser and its thread."""

        def stop() -> None:
            self._browser.close()
            self._playwright.stop()

        self._thread.submit(stop).result()
        self._thread.shutdown()


@pytest.fixture(scope="package")
def chromium() -> Iterator[Chromium]:
    """Start a browser for all tests here; a test calls it with `steps(page, seen)`."""
    executable = next(filter(None, map(shutil.which, _NAMES)), None)
    if executable is None:
        _skip(f"there is no Chromium (looked for {', '.join(_NAMES)}): .ci/run installs it")
    try:
        import playwright.sync_api  # noqa: F401  # only whether it is there
    except ImportError:
        _skip("playwright is not installed: `make test` sets it up")
    browser = Chromium(executable)
    yield browser
    browser.close()


def _skip(why: str) -> Any:
    # pytest-xdist passes warnings on to the process that prints the summary.
    warnings.warn(f'*** The tests marked "browser" WERE SKIPPED: {why} ***', stacklevel=2)
    pytest.skip(why)


GIVEN = Threshold(
    on_abstain="pass",
    value=0.41,
    method="percentile",
    percentile=5,
    evaluator="RefChecker",
    samples=9,
    passed=9,
)


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the report of `RUNS` once for all tests, with a threshold that was given."""
    return write(tmp_path_factory.mktemp("report"), RUNS, threshold=GIVEN)


_CONTRASTS = """
selector => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true})
  const read = color => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1)
    return [...canvas.getImageData(0, 0, 1, 1).data]
  }
  const known = {}  // Reading the canvas takes a millisecond or more, and there are few colours.
  const rgb = color => known[color] ??= read(color)
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0)
  const contrast = (a, b) => {
    const [dark, bright] = [light(a), light(b)].sort((x, y) => x - y)
    return (bright + 0.05) / (dark + 0.05)
  }
  const behind = e => {
    for (; e; e = e.parentElement) {
      const color = rgb(getComputedStyle(e).backgroundColor)
      if (color[3] === 255) return color
    }
    return [255, 255, 255]
  }
  const found = []
  for (const e of document.querySelectorAll(selector || '.demur *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
    const style = getComputedStyle(e)
    const text = e instanceof SVGElement ? style.fill : style.color
    if (own && e.getBoundingClientRect().width > 1 && style.visibility === 'visible')
      found.push([e.getAttribute('class') || e.tagName, contrast(rgb(text), behind(e))])
    if (e.matches('.demur-mark'))
      found.push(['line', contrast(rgb(style.textDecorationColor), behind(e.parentElement))])
  }
  return found
}
"""
"""A script that compares the colour of each text with the first background behind it.

Its argument selects the elements; without one, it takes those of views.
"""


@pytest.fixture(scope="session")
def contrasts() -> str:
    """Return a script for the contrasts of texts in views, and of the lines under marks."""
    return _CONTRASTS
