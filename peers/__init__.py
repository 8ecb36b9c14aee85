"""Compare demur with its peers: their speed, and what their guards let through.

Each peer runs in its own environment (`peers.environments`). So no peer is among demur's
dependencies, and no peer decides the versions of another one.
"""
