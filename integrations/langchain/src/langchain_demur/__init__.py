"""Check the answers of LangChain agents and LangGraph graphs before anyone sees them."""

from langchain_demur.middleware import HallucinationMiddleware
from langchain_demur.node import guarded_node

__all__ = ["HallucinationMiddleware", "guarded_node"]
