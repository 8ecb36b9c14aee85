"""Public data sets, read as their publishers keep them."""
