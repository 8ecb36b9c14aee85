"""Check what LangChain agents and LangGraph graphs say and do before it leaves them."""

from langchain_demur.grounded_calls import GroundedCalls
from langchain_demur.middleware import HallucinationMiddleware
from langchain_demur.node import guarded_node

__all__ = ["GroundedCalls", "HallucinationMiddleware", "guarded_node"]
