"""Find question, answer and contexts in what chains take, return and stream.

This room promises to the others:

- It has plain functions over mappings, messages, documents and chunks. They know no guard and ask
  no model.
- If something cannot be found, the error names the keys that were looked for.
- Edits are made in a copy.
"""

from demur.shapes.answer_edits import Answer
from demur.shapes.answers import find_answer, stays
from demur.shapes.calls import (
    calls_last,
    parts_of_call,
    sample_of,
    status_of_call,
    tool_calls,
)
from demur.shapes.chunks import Form, added, fits, last_chunks, others_in, read_chunk, streamed_in
from demur.shapes.data import NoSuchForm
from demur.shapes.finding import (
    ANSWER_KEYS,
    CALLS,
    CONTEXT_KEYS,
    Own,
    as_documents,
    distinct,
    find_contexts,
    find_question,
    under_context_keys,
    with_found,
)
from demur.shapes.given import given_texts
from demur.shapes.messages import (
    find_messages,
    is_users,
    last_written,
    prompt_messages,
    said_by_user,
    sources,
    this_turn,
    tool_results,
)
from demur.shapes.outcomes import CallStatus
from demur.shapes.passed_on import alike, as_given
from demur.shapes.readers import ContextsReader, Reader, check_reader, kind_of
from demur.shapes.tool_names import READING, only_reads, words_of

__all__ = [
    "ANSWER_KEYS",
    "CALLS",
    "CONTEXT_KEYS",
    "READING",
    "Answer",
    "CallStatus",
    "ContextsReader",
    "Form",
    "NoSuchForm",
    "Own",
    "Reader",
    "added",
    "alike",
    "as_documents",
    "as_given",
    "calls_last",
    "check_reader",
    "distinct",
    "find_answer",
    "find_contexts",
    "find_messages",
    "find_question",
    "fits",
    "given_texts",
    "is_users",
    "kind_of",
    "last_chunks",
    "last_written",
    "only_reads",
    "others_in",
    "parts_of_call",
    "prompt_messages",
    "read_chunk",
    "said_by_user",
    "sample_of",
    "sources",
    "status_of_call",
    "stays",
    "streamed_in",
    "this_turn",
    "tool_calls",
    "tool_results",
    "under_context_keys",
    "with_found",
    "words_of",
]
