"""Write the adapter in PEFT's form, for vLLM and for transformers: `python -m demur_judge`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from demur_judge.peft_form import BASE, CONFIG, TENSORS, PeftFormError, write_peft

_AFTERWARDS = f"""\
needs:    pip install 'demur-judge[peft]'
then:     vllm serve {BASE} \\
              --enable-lora --max-lora-rank 16 --lora-modules demur-judge=FOLDER
more:     https://demur-dev.github.io/demur/judges/
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the two files, and return the exit status: 1 if they could not be written."""
    parser = argparse.ArgumentParser(
        prog="python -m demur_judge",
        description=f"Write demur's adapter in PEFT's form ({TENSORS}, 37 MB, and {CONFIG}), as "
        f"vLLM and transformers read it. It is for {BASE}.",
        epilog=_AFTERWARDS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "folder",
        metavar="FOLDER",
        type=Path,
        help="a new or an empty folder for the two files",
    )
    folder: Path = parser.parse_args(arguments).folder
    try:
        write_peft(folder)
    except PeftFormError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{folder} has the adapter for {BASE} in PEFT's form.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
