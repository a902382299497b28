"""Maps servers' finish reasons to ours."""

from collections.abc import Mapping
from typing import Literal

from ostler.models.model_types import ReplyFinished

_MAX_SHOWN = 60

_SERVER_REASONS: Mapping[Literal["stop", "length", "refusal", "filtered"], str] = {
    "stop": "stop eos eos_token end end_turn stop_sequence complete completed tool_calls function_call tool_use",
    "length": "length max_tokens max_output_tokens model_length model_context_window_exceeded",
    "refusal": "refusal",
    "filtered": "content_filter content_filtered safety recitation blocklist prohibited_content spii sensitive",
}
_REASON_BY_WORD: Mapping[str, Literal["stop", "length", "refusal", "filtered", "other"]] = {
    word: reason for reason, server_words in _SERVER_REASONS.items() for word in server_words.split()
}


def parse_finish_reason(server_reason: str, *, has_calls: bool, refused: bool) -> ReplyFinished:
    """Return the end of a reply whose server sent this finish reason, or none.

    Truncated, refused and filtered replies keep that reason even if they have calls, which may be incomplete.
    """
    reason = _REASON_BY_WORD.get(server_reason.strip().lower(), "other") if server_reason else "stop"
    if reason in ("length", "refusal", "filtered"):
        return ReplyFinished(reason)
    unknown_reason = server_reason.strip()[:_MAX_SHOWN] if reason == "other" else ""
    if has_calls:
        return ReplyFinished("calls", unknown_reason)
    return ReplyFinished("refusal") if refused else ReplyFinished(reason, unknown_reason)
