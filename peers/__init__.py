"""demur beside its peers: their speed, and what their guards let through.

Each peer runs in an environment of its own (`peers.environments`), so that none of them is among
demur's dependencies, and none decides the version of another's.
"""
