"""Where question, answer and contexts stand in what chains take, give and stream.

What the room promises to the others: plain functions over mappings, messages, documents and chunks
that know no guard and ask no model; what cannot be found is an error that names the keys that were
looked for; what is edited is a copy.
"""

from demur.shapes.chunks import Form, added, fits, last_chunks, other_keys, read_chunk
from demur.shapes.finding import (
    CONTEXT_KEYS,
    ContextsReader,
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
    under_context_keys,
)
from demur.shapes.messages import (
    find_messages,
    is_users,
    last_written,
    said_by_user,
    sources,
    this_turn,
    tool_results,
)
from demur.shapes.passed_on import alike, as_given

__all__ = [
    "CONTEXT_KEYS",
    "ContextsReader",
    "Form",
    "Reader",
    "added",
    "alike",
    "as_documents",
    "as_given",
    "can_edit",
    "distinct",
    "edit_answer",
    "find_answer",
    "find_contexts",
    "find_messages",
    "find_question",
    "find_text",
    "fits",
    "is_users",
    "kind_of",
    "last_chunks",
    "last_written",
    "only_judged",
    "other_keys",
    "read_chunk",
    "said_by_user",
    "sources",
    "this_turn",
    "tool_results",
    "under_context_keys",
]
