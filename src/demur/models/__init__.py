"""How models are named, called and read."""
