"""Guard conformance: what reaches a client through demur's guard, and through what else there is.

Every product answers the same questions over the same local server, which plays the chain's model
and the judge (`server`, `judge`, `facts`). A small adapter (`adapters/`) uses it in the way that
its own documentation has for "check the answer with a judge before the user sees it". It runs in an
environment of its own (`peers.environments`) under `harness`, which has only the standard library;
`checks` counts what became of each call.

    python -m peers.conformance                            all of it
    python -m peers.conformance --guard demur --check leak
    python -m peers.conformance --markdown                 as a table for a page
"""
