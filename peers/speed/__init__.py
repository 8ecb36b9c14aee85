"""How fast demur and its peers score the same answers, at what cost: `python -m peers.speed`."""
