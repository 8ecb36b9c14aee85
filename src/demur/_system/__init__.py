"""Deal with the process and its files: forks, the end, memory, warnings, files written whole."""

from demur._system.exits import at_the_end, end_abruptly, is_ending
from demur._system.files import as_json, locked, new_files, read_lines, write_lines, write_whole
from demur._system.forks import in_child, leave, lock, renewed
from demur._system.once_a_minute import warn_once_a_minute
from demur._system.private import make_private_folder, owner_only
from demur._system.recent import Recent

__all__ = [
    "Recent",
    "as_json",
    "at_the_end",
    "end_abruptly",
    "in_child",
    "is_ending",
    "leave",
    "lock",
    "locked",
    "make_private_folder",
    "new_files",
    "owner_only",
    "read_lines",
    "renewed",
    "warn_once_a_minute",
    "write_lines",
    "write_whole",
]
