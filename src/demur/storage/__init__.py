"""Keep questions with vectors and metadata in Chroma, as the base of demur's stores.

This room promises to the others:

- A store is in memory, in a folder, on a server, or behind a client that the user made. All are
  used alike.
- Written data is there when the call returns.
- A collection knows which embedding it was made with, and refuses another one.
- A search costs one query. Further queries follow only if the caller needs more entries.
- A forked process cannot use what its parent has opened.
"""

from demur.storage.chroma import AT_ONCE, Chroma, parts
from demur.storage.questions import Questions, question_id

__all__ = [
    "AT_ONCE",
    "Chroma",
    "Questions",
    "parts",
    "question_id",
]
