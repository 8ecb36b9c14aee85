"""Bring `.venv` up to date for `make`, and do nothing if it is up to date.

    python tools/setup_venv.py run     what the command line, the local models and the demo need
    python tools/setup_venv.py dev     the same, and what the tests and checks need

A stamp in `.venv` records what each set was made from: the interpreter, the path of the checkout,
and the contents of the files that list the dependencies. If the interpreter or the path has
changed, the environment is made again. If only the lists have changed, the packages are installed
again. The stamp is written last, so the next run continues an interrupted run.

The script needs only the standard library. Any Python that is called `python3` must be able to read
it, so that a Python that is too old gets a clear message.
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

# Each set is a list of `pip install` runs. `dev` includes everything in `run`. The judge is in the
# run of the core, which requires it, so that pip takes it from the checkout.
SETS = {
    "run": [["--editable", "judge", "--editable", ".[demo]"]],
    "dev": [
        [
            *("--editable", "judge", "--editable", ".[demo,serve,small,similarity,postgres,otel]"),
            *("-r", "requirements/dev.txt"),
        ],
        # These come after the core, so that they fit its versions and change none.
        ["--editable", "integrations/langchain", "--editable", "integrations/llama-index"],
        ["--editable", "integrations/ray", "--editable", "research"],
        ["--no-deps", "-r", "requirements/dev-no-deps.txt"],
    ],
}
IMPLIED = {"run": ["run"], "dev": ["run", "dev"]}
LISTS = {
    "run": ["pyproject.toml", "judge/pyproject.toml"],
    "dev": [
        "pyproject.toml",
        "judge/pyproject.toml",
        "integrations/langchain/pyproject.toml",
        "integrations/llama-index/pyproject.toml",
        "integrations/ray/pyproject.toml",
        "research/pyproject.toml",
        "requirements/dev.txt",
        "requirements/dev-no-deps.txt",
    ],
}


def interpreter():
    """Return what the environment itself is made from."""
    return [sys.version, sys.base_prefix, ROOT]


def digest(name):
    """Return a hash of the files that define the set `name`."""
    found = hashlib.sha256(repr(SETS[name]).encode())
    for path in LISTS[name]:
        with open(os.path.join(ROOT, path), "rb") as file:
            found.update(hashlib.sha256(file.read()).digest())
    return found.hexdigest()


def read_stamp():
    """Return what an earlier run recorded as installed."""
    try:
        with open(STAMP) as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return {}
    if not isinstance(stamp, dict) or not os.path.exists(PYTHON):
        return {}
    return stamp


def write_stamp(stamp):
    """Record what is installed, completely or not at all."""
    with open(STAMP + ".new", "w") as file:
        json.dump(stamp, file)
    os.replace(STAMP + ".new", STAMP)


def run(*command):
    """Run a command in the checkout. If it fails, end this script with a message."""
    status = subprocess.call(command, cwd=ROOT)
    if status:
        sys.exit("setup: this failed: {} (status {})".format(" ".join(command), status))


def make_venv():
    """Make an empty environment with pip in it."""
    say("making .venv with Python {}.{}.{}".format(*sys.version_info[:3]))
    if subprocess.call([sys.executable, "-m", "venv", "--clear", VENV], cwd=ROOT):
        # Some systems package Python without the wheels from which venv installs pip.
        say("no pip in this Python's venv module: taking the one beside it")
        run(sys.executable, "-m", "venv", "--clear", "--without-pip", VENV)
        run(sys.executable, "-m", "pip", "--python", PYTHON, "install", "pip")
    # Python 3.10 comes with a pip of 2023, which takes a quarter of an hour to choose the versions.
    upgrade = ["install", "--quiet", "--disable-pip-version-check", "--upgrade", "pip"]
    run(PYTHON, "-m", "pip", *upgrade)


def say(text):
    """Print a message for the user, who may have to wait for minutes."""
    sys.stderr.write("setup: {}\n".format(text))
    sys.stderr.flush()


def main(name):
    """Bring the set `name` up to date."""
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
        # Python compiles a module when it is first imported; most of them never are.
        options = ["--quiet", "--disable-pip-version-check", "--no-compile"]
        run(PYTHON, "-m", "pip", "install", *options, *arguments)
    for implied in IMPLIED[name]:
        stamp["sets"][implied] = digest(implied)
    write_stamp(stamp)
    say("done")


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in SETS:
        sys.exit("usage: setup_venv.py {}".format("|".join(SETS)))
    main(sys.argv[1])
