"""Run the recipes of docs/elsewhere.md with the frameworks, each in an environment of its own.

The environments are large, so each is removed once its driver has run.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from agent_server import Reply, speaking
from support.installed import Built, environment, run
from support.openai_server import openai_server
from support.pages import DOCS, fences

PAGE = DOCS / "elsewhere.md"
SAVED = {"python": "{}_recipe.py", "py": "plugged.py", "yaml": "config.yaml"}
"""The name of the file that each kind of fence becomes."""
QUIET = {
    **{"OPENAI_API_KEY": "key", "NO_PROXY": "*", "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
    **{"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false"},
    **{"OTEL_SDK_DISABLED": "true", "HAYSTACK_TELEMETRY_ENABLED": "False"},
    **{"OPENAI_AGENTS_DISABLE_TRACING": "1"},
}


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest,
    built: dict[str, Built],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, Any]:
    """Return what a module's driver tells of each case, with the requests to the model.

    The module has the section of the page, the recipe's name, the packages, the driver, and the
    model's replies by case. A question names its case, as in "wrong: where is the Louvre?".
    """
    module: Any = request.module
    folder = tmp_path_factory.mktemp(module.NAME)
    for fence in fences(PAGE, *SAVED):
        if fence.section == module.SECTION:
            (folder / SAVED[fence.language].format(module.NAME)).write_text(fence.text)
    (folder / "driver.py").write_text(module.DRIVER)
    small = (f"{built['demur'].wheel}[small]", "--find-links", built["demur-judge"].wheel.parent)
    home = folder / "environment"
    with openai_server(speaking(by_case(module.REPLIES))) as server:
        try:
            python = environment(home, *small, *module.PACKAGES)
            model = {"OPENAI_BASE_URL": server.url, "OPENAI_API_BASE": server.url}
            here: dict[str, Any] = {**QUIET, **model, "HOME": str(folder)}
            printed = run(folder, python, "driver.py", **here)
        finally:
            shutil.rmtree(home, ignore_errors=True)
    found = json.loads(printed.splitlines()[-1])
    cases = {name: [one for one in server.requests if name in cases_of(one)] for name in found}
    return {name: {"said": found[name], "requests": cases[name]} for name in found}


def by_case(replies: dict[str, list[Reply]]) -> Callable[[dict[str, Any]], Reply]:
    """Return a model that gives the replies of a case in order, then repeats the last."""
    coming = {name: [*of] for name, of in replies.items()}

    def speak(request: dict[str, Any]) -> Reply:
        (name,) = cases_of(request)
        return coming[name].pop(0) if len(coming[name]) > 1 else coming[name][0]

    return speak


def cases_of(request: dict[str, Any]) -> set[str]:
    """Return the names of the cases that a request's messages speak of."""
    text = json.dumps(request["messages"]).replace("\\n", " ")
    return set(re.findall(r"(\w+): where is the Louvre", text))
