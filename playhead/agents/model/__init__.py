"""An agent that a model behind any OpenAI-compatible endpoint answers for."""

from playhead.agents.model.agent import ModelAgent

__all__ = ["ModelAgent"]
