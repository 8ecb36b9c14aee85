"""Convert contexts into documents, whether a user gives them or a log holds them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from langchain_core.documents import Document
from pydantic import BeforeValidator, ValidationError

from demur._text import replace_surrogates
from demur.schema.invalid import in_words


def _as_documents(value: object) -> object:
    if value is None:
        return ()
    if isinstance(value, (str, Document, Mapping)):
        value = (value,)
    if not isinstance(value, (list, tuple)):
        raise ValueError(
            "expected a list of strings or langchain Documents, "
            f"got {type(value).__name__}: pass contexts=[...]"
        )
    return tuple(_as_document(item, at) for at, item in enumerate(value))


def _as_document(item: object, at: int) -> Document:
    if isinstance(item, Document):
        clean = replace_surrogates(item.page_content)
        return (
            item if clean == item.page_content else item.model_copy(update={"page_content": clean})
        )
    if isinstance(item, str):
        return Document(page_content=replace_surrogates(item))
    if isinstance(item, Mapping) and isinstance(item.get("page_content"), str):
        # Only the keys that a Document has are kept, because its constructor rejects others.
        known = {key: item[key] for key in Document.model_fields if key in item}
        try:
            return Document(**{**known, "page_content": replace_surrogates(item["page_content"])})
        except ValidationError as error:
            raise ValueError(f"item {at}: {in_words(error)}") from error
    raise ValueError(
        f"item {at}: expected a string or a langchain Document, got {type(item).__name__}"
    )


Contexts = Annotated[tuple[Document, ...], BeforeValidator(_as_documents)]
"""A tuple of documents. Strings, and mappings with the key `page_content`, are converted."""
