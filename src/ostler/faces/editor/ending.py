"""How a turn ended, in the protocol's words."""

from ostler.vocabulary.events import TurnEnded, UsageReported
from ostler.wire.acp_calls import PromptAnswer, PromptUsage
from ostler.wire.jsonrpc import INTERNAL_ERROR, RpcError

LONGEST_REPLY = "the model's longest reply"


def answer_of(ended: TurnEnded, used: PromptUsage, *, cancelled: bool) -> PromptAnswer:
    """The stop reason; a failure is an error, unless the turn was called off."""
    if cancelled or ended.reason == "cancelled":
        return PromptAnswer("cancelled", used if used.total_tokens else None)
    if ended.reason in ("failed", "timeout"):
        return _failed(ended)
    reason = "end_turn" if ended.reason == "done" else _limit(ended.limit)
    return PromptAnswer(reason, used if used.total_tokens else None)


def _limit(limit: str) -> str:
    return "max_tokens" if limit == LONGEST_REPLY or "token" in limit else "max_turn_requests"


def _failed(ended: TurnEnded) -> PromptAnswer:
    fault = ended.fault
    if fault and fault.code == "refusal":
        return PromptAnswer("refusal")
    if fault is None:
        raise RpcError(INTERNAL_ERROR, f"the turn ended early: {ended.reason}")
    said = fault.message if fault.code == "bug" else str(fault)
    raise RpcError(INTERNAL_ERROR, said, {"code": fault.code})


def added(used: PromptUsage, event: UsageReported) -> PromptUsage:
    """What a turn used so far, with one more model call."""
    cached = (used.cached_read_tokens or 0) + event.tokens_cached
    return PromptUsage(
        used.total_tokens + event.tokens_in + event.tokens_out,
        used.input_tokens + event.tokens_in,
        used.output_tokens + event.tokens_out,
        cached or None,
    )
