"""The internal agents for titles, summaries and compaction: their prompts and model."""

from collections.abc import Callable

import msgspec

from ostler.core.errors import OstlerError
from ostler.core.events import UsageReported
from ostler.knowledge.agent_definition import AgentRole
from ostler.knowledge.builtin_agents import builtin_agents
from ostler.models.model_types import ModelClient, ModelRequest, ReplyFinished, TextChunk, TextReclassified, Usage


def built_in_role(name: str) -> AgentRole:
    """Return an internal agent's built-in role."""
    return AgentRole(name, builtin_agents()[name].prompt)


class InternalAgents(msgspec.Struct, frozen=True):
    """The internal agents of a session.

    `role` returns an agent's role by name; `makes_titles` enables titles and summaries; `model` is a small model for
    this work, by default the session's model.
    """

    role: Callable[[str], AgentRole] = built_in_role
    makes_titles: bool = False
    model: str = ""


async def read_reply(model: ModelClient, request: ModelRequest, on_usage: Callable[[Usage], None]) -> str:
    """Return the text of a reply; empty if the request failed or the model declined it."""
    texts: list[str] = []
    try:
        async for chunk in model.stream(request):
            if isinstance(chunk, TextChunk):
                texts.append(chunk.text)
            elif isinstance(chunk, TextReclassified) or chunk in (ReplyFinished("refusal"), ReplyFinished("filtered")):
                texts.clear()
            elif isinstance(chunk, Usage):
                on_usage(chunk)
    except OstlerError:
        return ""
    return "".join(texts)


def usage_event(usage: Usage, model: str, context_used: int = 0, context_limit: int = 0) -> UsageReported:
    """Return the event for what a call of a model used."""
    counts = (usage.tokens_in, usage.tokens_out, usage.tokens_cached, usage.cost)
    return UsageReported(model, *counts, context_used, context_limit)
