"""What a server's refusal means: whose move it is, in one sentence, and whether asking again can help."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ostler.core.errors import BackendError
from ostler.models.loose_json import LooseJsonError, read_json, to_text
from ostler.models.secret_mask import SecretMask
from ostler.text.lazy_regex import lazy_regex

RETRYABLE_CODES = frozenset({"unreachable", "timeout", "closed", "stalled", "cut", "rate_limited", "server_error"})

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
_ROLE_ERROR = lazy_regex(
    r"roles? must alternate|only user(?:,? (?:and )?assistant)+ roles|roles? .{0,20}not supported|unexpected role"
    r"|system.{0,60}begin|system (?:message|role|prompt)s?.{0,40}(?:first|start|not supported|not allowed|only)"
    r"|(?:not support|unsupported|invalid|unknown) (?:the )?(?:role:? )?['\"]?system"
)
_CONTROL_CHARS = lazy_regex(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ud800-\udfff]+")
_MAX_SHOWN = 300


class ModelError(BackendError):
    """A refusal; `after` is how many seconds the server asks us to wait, `said` its own words with its code."""

    def __init__(
        self, message: str, *, code: str, hint: str = "", retry_after: float | None = None, server_text: str = ""
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.retry_after = retry_after
        self.server_text = server_text


class ErrorResponse(msgspec.Struct, frozen=True):
    """A reply that is no answer: status 200 stands for an error object within a stream."""

    server: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    secret_mask: SecretMask = SecretMask()

    def to_error(self) -> ModelError:
        """The failure it means."""
        said, told = self._error_texts()
        lower = told.lower()
        if shut_out := self._access_error(said):
            return shut_out
        if self.status == 413 or (_contains_any(_CONTEXT_WORDS, lower) and self.status != 429):
            return self._make_error(
                "context_length", "says that the conversation is too long for the model", said, told
            )
        if _contains_any(_TOOLS_WORDS, lower):
            hint = "have the model call tools in its answer: --dialect text, or `dialect` in the profile"
            return self._make_error("bad_request", "refused the request", said, told, hint)
        if self.status in (429, 402) or _contains_any(("rate_limit", "insufficient_quota", "credit balance"), lower):
            return self._rate_limit_error(said, told)
        if self.status == 404 or _contains_any(_MODEL_WORDS, lower):
            return self._make_error("not_found", "does not have what was asked for", said, told)
        failed = self.status >= 500 or self.status in (408, 409)
        if failed or _contains_any(("overloaded", "server_error", "api_error"), lower):
            # A template's refusal of a role is told as a failure by some, and asking again in the same way is no help.
            return self._make_error("bad_request" if is_role_error(lower) else "server_error", "failed", said, told)
        return self._make_error("bad_request", "refused the request", said, told)

    def _access_error(self, message: str) -> ModelError | None:
        """What has nothing to do with what was asked: who we are, and where we knock."""
        if self.status in (400, 495, 496) and b"SSL certificate" in self.body:
            hint = "name one that it takes with the profile's `clientCert` (and `clientKey`)"
            return ModelError(f"{self.server} asks for a client certificate", code="tls", hint=hint)
        if self.status in (401, 403):
            return self._key_error(message)
        return self._redirect_error() if 300 <= self.status < 400 else None

    def _error_texts(self) -> tuple[str, str]:
        """The message for a person, and all words of the error for telling kinds apart."""
        try:
            document = read_json(self.body)
        except LooseJsonError:
            text = self.body.decode("utf-8", "replace").strip()
            document = "" if text.startswith("<") else text
        message, told = _parse_error_document(document)
        return clean_line(message, self.secret_mask), clean_line(told, self.secret_mask, 4000)

    def _key_error(self, message: str) -> ModelError:
        ways = "set OSTLER_API_KEY or the profile's apiKey"
        if not self.secret_mask.has_key:
            return ModelError(f"{self.server} wants a key", code="key_refused", hint=ways, server_text=message)
        reason = f" ({message})" if message and self.status == 403 else ""
        return ModelError(
            f"the key was refused by {self.server}{reason}", code="key_refused", hint=ways, server_text=message
        )

    def _redirect_error(self) -> ModelError:
        to = clean_line(self.headers.get("location", ""), self.secret_mask)
        hint = f"if you trust it, set the base URL to {to}" if to else "check the base URL"
        return ModelError(f"{self.server} sends us elsewhere, and a key is not sent along", code="wrong_url", hint=hint)

    def _rate_limit_error(self, message: str, full_text: str) -> ModelError:
        lower = full_text.lower()
        if self.status == 402 or (_contains_any(_QUOTA_WORDS, lower) and not _contains_any(_BURST_WORDS, lower)):
            hint = "add credit or take another model; asking again will not help"
            return self._make_error("quota", "says that the quota is used up", message, full_text, hint)
        return self._make_error(
            "rate_limited", "gets too many requests", message, full_text, "wait a moment, then go on"
        )

    def _make_error(self, code: str, what: str, message: str, full_text: str, hint: str = "") -> ModelError:
        number = f" ({self.status})" if self.status != 200 else ""
        reason = f": {message}" if message else ""
        after = parse_retry_after(self.headers)
        return ModelError(
            f"{self.server} {what}{number}{reason}", code=code, hint=hint, retry_after=after, server_text=full_text
        )


def is_role_error(error_text: str) -> bool:
    """Whether a refusal is about the roles that messages have."""
    return _ROLE_ERROR.search(error_text.lower()) is not None


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks us to wait, told in milliseconds, seconds or as a date."""
    precise = _parse_number(headers.get("retry-after-ms", ""))
    if precise is not None:
        return precise / 1000
    told = headers.get("retry-after", "").strip()
    seconds = _parse_number(told)
    if seconds is not None or not told:
        return seconds
    import time
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(told[:64]).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _parse_number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,12}(?:\.\d{1,9})?", text.strip()) else None


def _contains_any(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)


def _parse_error_document(document: Any) -> tuple[str, str]:
    """Message and all words, out of the many shapes that servers give their errors."""
    if isinstance(document, list) and document:
        document = document[0]
    error = document
    if isinstance(document, dict):
        error = document.get("error") or document.get("detail") or document
    if not isinstance(error, dict):
        text = to_text(error) if error else ""
        return text, text
    message = to_text(error.get("message") or error.get("detail") or "") or to_text(error)
    kinds = [to_text(error[key]) for key in ("code", "type", "param") if error.get(key)]
    return message, " ".join([*kinds, message])


def clean_line(text: str, secret_mask: SecretMask, limit: int = _MAX_SHOWN) -> str:
    """One harmless line of bounded length that never shows a key."""
    text = _CONTROL_CHARS.sub(" ", secret_mask.apply(text)).strip()
    return text if len(text) <= limit else text[:limit] + "…"
