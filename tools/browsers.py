"""Find the system's Chromium, and start it."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Playwright

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")


def executable() -> str | None:
    """Return the path of the first of these browsers that is installed, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def launched(playwright: Playwright) -> Browser:
    """Start the browser."""
    # Its own sandbox does not run as root.
    root = ["--no-sandbox"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=executable(), args=["--disable-gpu", *root])
