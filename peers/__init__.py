"""Compare demur with its peers: their speed, and what their guards let through.

Each peer runs in its own environment (`peers.environments`). So no peer is among demur's
dependencies, and no peer decides the versions of another one. What runs there, the adapters and
`conformance/harness.py`, stands apart: it imports nothing of this repository but, for demur's own
rows, demur.
"""
