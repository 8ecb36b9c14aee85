"""Carry the files of demur's two own judges. The model card, `README.md`, says what they are.

`FOLDER` holds them, beside `SHA256SUMS` with their sums. demur checks the sums when it loads the
files.
"""

from pathlib import Path

__version__ = "0.1.0"

FOLDER = Path(__file__).parent
"""The folder with the files."""
