"""Run `demur demo`: a guarded retrieval chain over the standard library's documentation."""
