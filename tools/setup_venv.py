"""Bring `.venv` up to date for `make`, and do nothing when it is.

    python tools/setup_venv.py run     what the command line, the local models and the demo need
    python tools/setup_venv.py dev     that, and what the tests and checks need

A stamp in `.venv` remembers what each set was made from: the interpreter, the place of the
checkout, and the contents of the files that list the dependencies. The environment is made anew
when the interpreter or the place is another, and installed into again when only the lists are.
The stamp is written last, so an interrupted run is taken up by the next one.

Needs only the standard library, and must be readable by any Python that is called `python3`, so
that one that is too old is told so in words.
"""

import hashlib
import json
import os
import subprocess
import sys

OLDEST = (3, 10)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
STAMP = os.path.join(VENV, "demur-setup.json")
PYTHON = os.path.join(VENV, *(("Scripts", "python.exe") if os.name == "nt" else ("bin", "python")))

# Each set is a list of `pip install` runs. `dev` holds all that `run` does.
SETS = {
    "run": [["--editable", ".[demo]"]],
    "dev": [
        ["--editable", ".[demo,similarity,postgres,otel]", "-r", "requirements/dev.txt"],
        # After the core, so that it takes what fits that and moves nothing.
        ["--editable", "integrations/langchain", "--editable", "integrations/llama-index"],
        ["--editable", "integrations/ray", "--editable", "research"],
        ["--no-deps", "-r", "requirements/dev-no-deps.txt"],
    ],
}
IMPLIED = {"run": ["run"], "dev": ["run", "dev"]}
LISTS = {
    "run": ["pyproject.toml"],
    "dev": [
        "pyproject.toml",
        "integrations/langchain/pyproject.toml",
        "integrations/llama-index/pyproject.toml",
        "integrations/ray/pyproject.toml",
        "research/pyproject.toml",
        "requirements/dev.txt",
        "requirements/dev-no-deps.txt",
    ],
}


def interpreter():
    """What the environment itself is made from."""
    return [sys.version, sys.base_prefix, ROOT]


def digest(name):
    """The contents of the files that say what set `name` is made of."""
    found = hashlib.sha256(repr(SETS[name]).encode())
    for path in LISTS[name]:
        with open(os.path.join(ROOT, path), "rb") as file:
            found.update(hashlib.sha256(file.read()).digest())
    return found.hexdigest()


def read_stamp():
    """What is installed, as an earlier run left word of it."""
    try:
        with open(STAMP) as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return {}
    if not isinstance(stamp, dict) or not os.path.exists(PYTHON):
        return {}
    return stamp


def write_stamp(stamp):
    """Leave word for the next run, all of it or nothing."""
    with open(STAMP + ".new", "w") as file:
        json.dump(stamp, file)
    os.replace(STAMP + ".new", STAMP)


def run(*command):
    """Run a command in the checkout; its failure ends this script with its status."""
    status = subprocess.call(command, cwd=ROOT)
    if status:
        sys.exit("setup: this failed: {} (status {})".format(" ".join(command), status))


def make_venv():
    """An empty environment with pip in it."""
    say("making .venv with Python {}.{}.{}".format(*sys.version_info[:3]))
    if subprocess.call([sys.executable, "-m", "venv", "--clear", VENV], cwd=ROOT):
        # Some systems package Python without the wheels that venv takes pip from.
        say("no pip in this Python's venv module: taking the one beside it")
        run(sys.executable, "-m", "venv", "--clear", "--without-pip", VENV)
        run(sys.executable, "-m", "pip", "--python", PYTHON, "install", "pip")
    # The pip of 2023, which Python 3.10 brings, takes a quarter of an hour to choose the versions.
    upgrade = ["install", "--quiet", "--disable-pip-version-check", "--upgrade", "pip"]
    run(PYTHON, "-m", "pip", *upgrade)


def say(text):
    """Tell the user, who may wait for minutes."""
    sys.stderr.write("setup: {}\n".format(text))
    sys.stderr.flush()


def main(name):
    """Bring set `name` up to date."""
    if sys.version_info < OLDEST:
        sys.exit(
            "setup: demur needs Python {}.{} or newer, and this is {}.{}. "
            "Name another: make PYTHON=python3.12".format(*(OLDEST + sys.version_info[:2]))
        )
    stamp = read_stamp()
    wanted = digest(name)
    if stamp.get("interpreter") != interpreter():
        make_venv()
        stamp = {"interpreter": interpreter(), "sets": {}}
        write_stamp(stamp)
    if stamp["sets"].get(name) == wanted:
        return
    say("installing what `{}` needs; this takes a while the first time".format(name))
    for arguments in SETS[name]:
        run(PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments)
    for implied in IMPLIED[name]:
        stamp["sets"][implied] = digest(implied)
    write_stamp(stamp)
    say("done")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in SETS:
        sys.exit("usage: setup_venv.py {}".format("|".join(SETS)))
    main(sys.argv[1])
