"""Give the tests of similarities real, tiny models of torch."""

from __future__ import annotations

from support.tiny import torch_models

__all__ = ["torch_models"]
