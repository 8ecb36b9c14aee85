"""Call a Runnable in each way, and hear its events."""

from __future__ import annotations

import asyncio
from typing import Any

from langchain_core.runnables import Runnable

from support.guarded import Heard

WAYS = ["invoke", "ainvoke"]


def called(runnable: Runnable[Any, Any], way: str, given: Any, heard: Heard) -> Any:
    """Call the Runnable in this way, and return its output; join the chunks of a stream."""
    config: Any = {"callbacks": [heard]}

    async def there() -> Any:
        if way == "astream":
            return [one async for one in runnable.astream(given, config)]
        return [await runnable.ainvoke(given, config)]

    if way.startswith("a"):
        found = asyncio.run(there())
    else:
        stream = way == "stream"
        found = [*runnable.stream(given, config)] if stream else [runnable.invoke(given, config)]
    return "".join(found) if isinstance(found[0], str) else found[0]
