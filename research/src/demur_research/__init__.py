"""Repeat published experiments, and measure demur's judges on public data sets.

demur never imports this package. The package imports demur's rooms by their faces, with one
exception: it imports modules inside `demur.evaluators`, because it replays the stages of the
methods one by one. It takes exit codes, tables and progress bars from demur's command line
(`demur.cli.console`, `demur.cli.progress`). The data sets are not part of the package.
"""
