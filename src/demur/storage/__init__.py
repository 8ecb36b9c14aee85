"""Questions with vectors and metadata in Chroma: what the stores stand on.

What the room promises to the others: a store is in memory, in a folder, on a server or behind a
client of the user's own, and is used alike; what was written is there when the call returns; a
collection knows which embedding it was made with, and another one is refused; a search costs one
query, and goes on where its caller wants more; a process that was forked is refused the parent's.
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
