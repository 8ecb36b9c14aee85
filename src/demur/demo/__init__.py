"""`demur demo`: a retrieval chain over the standard library's documentation, guarded."""
