"""Check the answers of LangChain agents and LangGraph graphs before anyone sees them."""

from langchain_demur.middleware import HallucinationMiddleware
from langchain_demur.node import guarded_node

__all__ = ["HallucinationMiddleware", "guarded_node"]

try:
    from langchain_demur.decisions import ClaimDecisionModel
except ModuleNotFoundError as error:
    if error.name != "langchain_core.decisions":
        raise

    def __getattr__(name: str) -> object:
        if name != "ClaimDecisionModel":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise ImportError(f"{name} needs langchain-core 1.8: pip install -U 'langchain-core>=1.8'")

else:
    __all__ += ["ClaimDecisionModel"]
