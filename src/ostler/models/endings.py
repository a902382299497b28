"""Why a reply is over, out of the words that servers have for it: what was cut must not look like a whole answer."""

from collections.abc import Mapping
from typing import Literal

from ostler.models.words import Finished

_SHOWN = 60

_WORDS: Mapping[Literal["stop", "length", "refusal", "filtered"], str] = {
    "stop": "stop eos eos_token end end_turn stop_sequence complete completed tool_calls function_call tool_use",
    "length": "length max_tokens max_output_tokens model_length model_context_window_exceeded",
    "refusal": "refusal",
    "filtered": "content_filter content_filtered safety recitation blocklist prohibited_content spii sensitive",
}
_MEANT: Mapping[str, Literal["stop", "length", "refusal", "filtered", "other"]] = {
    word: reason for reason, words in _WORDS.items() for word in words.split()
}


def finished(word: str, *, called: bool, refused: bool) -> Finished:
    """The end of a reply that its server ended with that word, or without one.

    What was cut short or held back comes before its calls: they may be as unfinished as the rest.
    """
    meant = _MEANT.get(word.strip().lower(), "other") if word else "stop"
    if meant in ("length", "refusal", "filtered"):
        return Finished(meant)
    told = word.strip()[:_SHOWN] if meant == "other" else ""
    if called:
        return Finished("calls", told)
    return Finished("refusal") if refused else Finished(meant, told)
