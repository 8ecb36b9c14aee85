"""Real headless Chromium, or a skip that nobody overlooks."""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_ARGUMENTS = (
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass
class Seen:
    """What a page did beside showing itself."""

    errors: list[str] = field(default_factory=list)
    """Errors and warnings on its console, and exceptions that nothing caught."""
    requests: list[str] = field(default_factory=list)
    """What it asked for, itself included."""


class Chromium:
    """A browser in a thread of its own.

    Playwright's sync API keeps an event loop running in the thread that it was started in, where
    pytest-asyncio could then run none.
    """

    def __init__(self, executable: str) -> None:
        from playwright.sync_api import sync_playwright

        self._thread = ThreadPoolExecutor(1, thread_name_prefix="chromium")
        # Chromium's own sandbox does not run as root, as which containers do.
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
        """Run `steps(page, seen)` on a fresh page, in the browser's thread.

        Args:
            steps: Is given a playwright `Page` (of the sync API), and what that page did, as it
                goes on. What it raises is raised here.
            options: Of `Browser.new_context`: `viewport`, `color_scheme`, `java_script_enabled`...
        """

        def run() -> T:
            context = self._browser.new_context(**options)
            context.set_default_timeout(20_000)  # milliseconds; the machine may be slow
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
        """End the browser."""

        def stop() -> None:
            self._browser.close()
            self._playwright.stop()

        self._thread.submit(stop).result()
        self._thread.shutdown()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """Call it with `steps(page, seen)`; see `Chromium`."""
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
    # pytest-xdist hands warnings on to the process that prints the summary.
    warnings.warn(f'*** The tests marked "browser" WERE SKIPPED: {why} ***', stacklevel=2)
    pytest.skip(why)


_CONTRASTS = """
() => {
  const canvas = document.createElement('canvas').getContext('2d', {willReadFrequently: true})
  const rgb = color => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1)
    return [...canvas.getImageData(0, 0, 1, 1).data]
  }
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
  for (const e of document.querySelectorAll('.demur *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
    const style = getComputedStyle(e)
    if (own) found.push([e.className || e.tagName, contrast(rgb(style.color), behind(e))])
    if (e.matches('.demur-mark'))
      found.push(['line', contrast(rgb(style.textDecorationColor), behind(e.parentElement))])
  }
  return found
}
"""
"""Each text that stands in a view: its own colour, to the first background behind it."""


@pytest.fixture(scope="session")
def contrasts() -> str:
    """A script: the contrast of each text in views, and of lines under marks, with their kinds."""
    return _CONTRASTS
