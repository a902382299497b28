"""Converts the end of a turn to an ACP stop reason with its usage."""

from ostler.core.events import TurnEnded, UsageReported
from ostler.wire.acp_requests import PromptResponse, PromptUsage
from ostler.wire.jsonrpc import INTERNAL_ERROR, RpcError

MAX_OUTPUT_LIMIT = "the model's longest reply"


def prompt_response(turn_end: TurnEnded, usage: PromptUsage, *, cancelled: bool) -> PromptResponse:
    """Return the stop reason and usage. Raises `RpcError` for a failed turn that was not cancelled."""
    if cancelled or turn_end.reason == "cancelled":
        return PromptResponse("cancelled", usage if usage.total_tokens else None)
    if turn_end.reason in ("failed", "timeout"):
        return _failure_response(turn_end)
    reason = "end_turn" if turn_end.reason == "done" else _limit_stop_reason(turn_end.limit)
    return PromptResponse(reason, usage if usage.total_tokens else None)


def _limit_stop_reason(limit: str) -> str:
    return "max_tokens" if limit == MAX_OUTPUT_LIMIT or "token" in limit else "max_turn_requests"


def _failure_response(turn_end: TurnEnded) -> PromptResponse:
    fault = turn_end.fault
    if fault and fault.code == "refusal":
        return PromptResponse("refusal")
    if fault and fault.code == "check_failed":  # the model answered; the editor has shown the failed check
        return PromptResponse("end_turn")
    if fault is None:
        raise RpcError(INTERNAL_ERROR, f"the turn ended early: {turn_end.reason}")
    message = fault.message if fault.code == "bug" else str(fault)
    raise RpcError(INTERNAL_ERROR, message, {"code": fault.code})


def add_usage(usage: PromptUsage, event: UsageReported) -> PromptUsage:
    """Return the usage of a turn plus one more model call."""
    cached = (usage.cached_read_tokens or 0) + event.tokens_cached
    return PromptUsage(
        usage.total_tokens + event.tokens_in + event.tokens_out,
        usage.input_tokens + event.tokens_in,
        usage.output_tokens + event.tokens_out,
        cached or None,
    )
