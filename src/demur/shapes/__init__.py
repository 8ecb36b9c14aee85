"""Where question, answer and contexts stand in what chains take, give and stream.

What the room promises to the others: plain functions over mappings, messages, documents and chunks
that know no guard and ask no model; what cannot be found is an error that names the keys that were
looked for; what is edited is a copy.
"""

from demur.shapes.chunks import Form, added, fits, last_chunks, other_keys, read_chunk
from demur.shapes.finding import (
    CONTEXT_KEYS,
    Reader,
    as_documents,
    can_edit,
    distinct,
    edit_answer,
    find_answer,
    find_contexts,
    find_question,
    find_text,
    kind_of,
    only_judged,
)
from demur.shapes.messages import last_written, sources, this_turn
from demur.shapes.passed_on import alike, as_given
from demur.shapes.readers import check_reader

__all__ = [
    "CONTEXT_KEYS",
    "Form",
    "Reader",
    "added",
    "alike",
    "as_documents",
    "as_given",
    "can_edit",
    "check_reader",
    "distinct",
    "edit_answer",
    "find_answer",
    "find_contexts",
    "find_question",
    "find_text",
    "fits",
    "kind_of",
    "last_chunks",
    "last_written",
    "only_judged",
    "other_keys",
    "read_chunk",
    "sources",
    "this_turn",
]
