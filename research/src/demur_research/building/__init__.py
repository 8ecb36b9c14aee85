"""Build data sets in the way of the papers, into files that `datasets` reads."""
