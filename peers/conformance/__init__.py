"""Compare what reaches a client through demur's guard with what passes other guards.

    python -m peers.conformance                            everything
    python -m peers.conformance --guard demur --check leak
    python -m peers.conformance --markdown                 as tables for a page

Every product answers the same questions on the same local server, which plays the chain's model and
the judge (`server`, `judge`, `facts`). A small adapter (`adapters/`) uses the product as its own
documentation shows for "check the answer with a judge before the user sees it". It runs in the
product's environment (`peers.environments`) under `harness`, which needs only the standard library.
`checks` counts what happened to each call.
"""
