"""Why a reply is over, out of the words that servers have for it: what was cut must not look like a whole answer."""

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
    word: reason for reason, words in _SERVER_REASONS.items() for word in words.split()
}


def parse_finish_reason(server_reason: str, *, has_calls: bool, refused: bool) -> ReplyFinished:
    """The end of a reply that its server ended with that word, or without one.

    What was cut short or held back comes before its calls: they may be as unfinished as the rest.
    """
    meant = _REASON_BY_WORD.get(server_reason.strip().lower(), "other") if server_reason else "stop"
    if meant in ("length", "refusal", "filtered"):
        return ReplyFinished(meant)
    told = server_reason.strip()[:_MAX_SHOWN] if meant == "other" else ""
    if has_calls:
        return ReplyFinished("calls", told)
    return ReplyFinished("refusal") if refused else ReplyFinished(meant, told)
