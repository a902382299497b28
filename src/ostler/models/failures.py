"""What a server's refusal means: whose move it is, in one sentence, and whether asking again can help."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.models.hidden import Hidden
from ostler.models.loose_json import NotJson, compact, read_json
from ostler.text.regex import regex
from ostler.vocabulary.errors import BackendError

REPEATABLE = frozenset({"unreachable", "timeout", "closed", "stalled", "cut", "rate_limited", "server_error"})

_CONTEXT_WORDS = (
    "context_length_exceeded",
    "exceed_context_size",
    "context length",
    "context window",
    "context size",
    "context limit",
    "prompt is too long",
    "input is too long",
    "input length should be",
    "too many input tokens",
    "reduce the length of the messages",
    "input token count",
    "maximum number of tokens allowed",
    "`inputs` must have less than",
    "`max_new_tokens` must be",
)
_QUOTA_WORDS = ("quota", "billing", "credit", "balance", "arrear", "payment", "per day", "per-day", "daily", "monthly")
_BURST_WORDS = ("per minute", "per-minute", "per second", "concurren", "rate_limit_exceeded")
_MODEL_WORDS = ("model_not_found", "model not found", "no such model", "unknown model", "invalid model")
_TOOLS_WORDS = (
    "not support tool",
    "not support function calling",
    "support tool use",
    "enable-auto-tool-choice",
    "tools param requires",
)
# A chat template, or a server, that takes system messages only at the beginning, or none.
_ROLES_ASKED = regex(
    r"roles? must alternate|only user(?:,? (?:and )?assistant)+ roles|roles? .{0,20}not supported|unexpected role"
    r"|system.{0,60}begin|system (?:message|role|prompt)s?.{0,40}(?:first|start|not supported|not allowed|only)"
    r"|(?:not support|unsupported|invalid|unknown) (?:the )?(?:role:? )?['\"]?system"
)
_UNSHOWN = regex(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ud800-\udfff]+")
_SHOWN = 300


class ModelFailure(BackendError):
    """A refusal; `after` is how many seconds the server asks us to wait, `said` its own words with its code."""

    def __init__(self, message: str, *, code: str, hint: str = "", after: float | None = None, said: str = "") -> None:
        super().__init__(message, code=code, hint=hint)
        self.after = after
        self.said = said


class Refusal(msgspec.Struct, frozen=True):
    """A reply that is no answer: status 200 stands for an error object within a stream."""

    where: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    hidden: Hidden = Hidden()

    def failure(self) -> ModelFailure:
        """The failure it means."""
        said, told = self._words()
        lower = told.lower()
        if shut_out := self._at_the_door(said):
            return shut_out
        if self.status == 413 or (_any(_CONTEXT_WORDS, lower) and self.status != 429):
            return self._made("context_length", "says that the conversation is too long for the model", said, told)
        if _any(_TOOLS_WORDS, lower):
            hint = "have the model call tools in its answer: --dialect text, or `dialect` in the profile"
            return self._made("bad_request", "refused the request", said, told, hint)
        if self.status in (429, 402) or _any(("rate_limit", "insufficient_quota", "credit balance"), lower):
            return self._limited(said, told)
        if self.status == 404 or _any(_MODEL_WORDS, lower):
            return self._made("not_found", "does not have what was asked for", said, told)
        failed = self.status >= 500 or self.status in (408, 409)
        if failed or _any(("overloaded", "server_error", "api_error"), lower):
            # A template's refusal of a role is told as a failure by some, and asking again in the same way is no help.
            return self._made("bad_request" if role_refused(lower) else "server_error", "failed", said, told)
        return self._made("bad_request", "refused the request", said, told)

    def _at_the_door(self, said: str) -> ModelFailure | None:
        """What has nothing to do with what was asked: who we are, and where we knock."""
        if self.status in (400, 495, 496) and b"SSL certificate" in self.body:
            hint = "name one that it takes with the profile's `clientCert` (and `clientKey`)"
            return ModelFailure(f"{self.where} asks for a client certificate", code="tls", hint=hint)
        if self.status in (401, 403):
            return self._key_refused(said)
        return self._redirected() if 300 <= self.status < 400 else None

    def _words(self) -> tuple[str, str]:
        """The message for a person, and all words of the error for telling kinds apart."""
        try:
            document = read_json(self.body)
        except NotJson:
            text = self.body.decode("utf-8", "replace").strip()
            document = "" if text.startswith("<") else text
        message, told = _error_words(document)
        return clean(message, self.hidden), clean(told, self.hidden, 4000)

    def _key_refused(self, said: str) -> ModelFailure:
        ways = "set OSTLER_API_KEY or the profile's apiKey"
        if not self.hidden.keyed:
            return ModelFailure(f"{self.where} wants a key", code="key_refused", hint=ways, said=said)
        reason = f" ({said})" if said and self.status == 403 else ""
        return ModelFailure(f"the key was refused by {self.where}{reason}", code="key_refused", hint=ways, said=said)

    def _redirected(self) -> ModelFailure:
        to = clean(self.headers.get("location", ""), self.hidden)
        hint = f"if you trust it, set the base URL to {to}" if to else "check the base URL"
        return ModelFailure(
            f"{self.where} sends us elsewhere, and a key is not sent along", code="wrong_url", hint=hint
        )

    def _limited(self, said: str, told: str) -> ModelFailure:
        lower = told.lower()
        if self.status == 402 or (_any(_QUOTA_WORDS, lower) and not _any(_BURST_WORDS, lower)):
            hint = "add credit or take another model; asking again will not help"
            return self._made("quota", "says that the quota is used up", said, told, hint)
        return self._made("rate_limited", "gets too many requests", said, told, "wait a moment, then go on")

    def _made(self, code: str, what: str, said: str, told: str, hint: str = "") -> ModelFailure:
        number = f" ({self.status})" if self.status != 200 else ""
        reason = f": {said}" if said else ""
        after = retry_after(self.headers)
        return ModelFailure(f"{self.where} {what}{number}{reason}", code=code, hint=hint, after=after, said=told)


def role_refused(said: str) -> bool:
    """Whether a refusal is about the roles that messages have."""
    return _ROLES_ASKED.search(said.lower()) is not None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks us to wait, told in milliseconds, seconds or as a date."""
    precise = _number(headers.get("retry-after-ms", ""))
    if precise is not None:
        return precise / 1000
    told = headers.get("retry-after", "").strip()
    seconds = _number(told)
    if seconds is not None or not told:
        return seconds
    import time
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(told[:64]).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,12}(?:\.\d{1,9})?", text.strip()) else None


def _any(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)


def _error_words(document: Any) -> tuple[str, str]:
    """Message and all words, out of the many shapes that servers give their errors."""
    if isinstance(document, list) and document:
        document = document[0]
    error = document
    if isinstance(document, dict):
        error = document.get("error") or document.get("detail") or document
    if not isinstance(error, dict):
        text = compact(error) if error else ""
        return text, text
    message = compact(error.get("message") or error.get("detail") or "") or compact(error)
    kinds = [compact(error[key]) for key in ("code", "type", "param") if error.get(key)]
    return message, " ".join([*kinds, message])


def clean(text: str, hidden: Hidden, limit: int = _SHOWN) -> str:
    """One harmless line of bounded length that never shows a key."""
    text = _UNSHOWN.sub(" ", hidden.out_of(text)).strip()
    return text if len(text) <= limit else text[:limit] + "…"
