"""Write a recording without its texts: `python -m tools.recorded RECORDING.jsonl OUT.jsonl.gz`.

A replay finds a call by its key, so it needs neither the prompt nor what a reply holds beside its
words, tokens and probabilities. The texts are of data sets, and may not be in the repository.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any


def without_texts(line: dict[str, Any]) -> dict[str, Any]:
    """Return a line of a recording without the prompt and without what a replay does not read."""
    if line["line"] != "call":
        return line
    data = line["reply"]["data"]
    metadata = data["response_metadata"]
    told = metadata["logprobs"]["content"] if metadata.get("logprobs") else []
    tokens = [
        {
            "token": one["token"],
            "logprob": one["logprob"],
            "top_logprobs": [
                {name: top[name] for name in ("token", "logprob")} for top in one["top_logprobs"]
            ],
        }
        for one in told
    ]
    usage = {name: data["usage_metadata"][name] for name in _TOKENS}
    kept = {"content": data["content"], "usage_metadata": usage}
    kept |= {"response_metadata": {"logprobs": {"content": tokens}} if tokens else {}}
    return {**line, "prompt": [], "reply": {"type": "ai", "data": kept}}


_TOKENS = ("input_tokens", "output_tokens", "total_tokens")


def main() -> None:
    """Write the file."""
    source, out = map(Path, sys.argv[1:])
    lines = [json.loads(line) for line in source.read_text().splitlines()]
    text = "".join(f"{json.dumps(without_texts(line))}\n" for line in lines)
    out.write_bytes(gzip.compress(text.encode(), 9, mtime=0))


if __name__ == "__main__":
    main()
