"""Make the picture of the README from a real run: `python -m tools.guarded_call`.

The README's first example runs on the local model. Chromium opens what its result shows in a
notebook, and takes the picture. The picture is saved in docs/images.
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from playwright.sync_api import sync_playwright
from tools.browsers import launched
from tools.screenshots import IMAGES

README = Path(__file__).parents[1] / "README.md"
PAGE = """<!doctype html><meta charset="utf-8"><title>A guarded call</title>
<style>
  body { margin: 16px; width: 680px; font-family: system-ui, sans-serif }
  /* What the picture does without: the references once more, and what the call cost here. */
  .demur-references, .demur-quiet, .demur-between details { display: none }
</style>
CALL"""


def main() -> None:
    """Run the example, and take the picture."""
    example = re.findall(r"^```python\n(.*?)^```$", README.read_text("utf-8"), re.M | re.S)[0]
    names: dict[str, Any] = {}
    exec(example, names)  # noqa: S102  # the code is from our own README
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        file = Path(folder, "call.html")
        file.write_text(PAGE.replace("CALL", names["result"]._repr_html_()), encoding="utf-8")
        page = launched(playwright).new_page(
            viewport={"width": 712, "height": 400}, device_scale_factor=1.5, color_scheme="light"
        )
        page.goto(file.as_uri())
        page.screenshot(path=IMAGES / "guarded-call.png", full_page=True)


if __name__ == "__main__":
    main()
