"""The laboratory: published experiments repeated, and the judges measured on public data.

It stands beside demur and is no part of it: demur never imports it. It comes in by the faces of
demur's rooms, but for `demur.evaluators`, of which it imports modules from within: it replays the
stages of the methods one by one. Of the command line it shares the exit codes, the tables and the
bars (`demur.cli.console`, `demur.cli.progress`). The data sets are not part of it.
"""
