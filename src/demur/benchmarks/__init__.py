"""Quality, measured on public data sets with any model. The data is not part of demur."""
