"""Data sets built anew, as the papers built theirs, into files that `datasets` reads."""
