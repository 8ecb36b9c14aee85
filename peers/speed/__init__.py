"""Compare how fast demur and its peers score answers, and at what cost: `python -m peers.speed`."""
