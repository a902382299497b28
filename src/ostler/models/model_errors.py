"""Turns a server's error response into a `ModelError` with a hint; its code decides about a retry."""

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
# Errors of chat templates and servers that accept system messages only at the start, or not at all.
_ROLE_ERROR = lazy_regex(
    r"roles? must alternate|only user(?:,? (?:and )?assistant)+ roles|roles? .{0,20}not supported|unexpected role"
    r"|system.{0,60}begin|system (?:message|role|prompt)s?.{0,40}(?:first|start|not supported|not allowed|only)"
    r"|(?:not support|unsupported|invalid|unknown) (?:the )?(?:role:? )?['\"]?system"
)
_CONTROL_CHARS = lazy_regex(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202f\u2060-\u206f\ufeff\ud800-\udfff]+")
_MAX_SHOWN = 300


class ModelError(BackendError):
    """An error reported by a server. `retry_after` is in seconds; `server_text` is its message with code and type."""

    def __init__(
        self, message: str, *, code: str, hint: str = "", retry_after: float | None = None, server_text: str = ""
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.retry_after = retry_after
        self.server_text = server_text


class ErrorResponse(msgspec.Struct, frozen=True):
    """An error response. Status 200 means an error object inside a stream."""

    server: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    secret_mask: SecretMask = SecretMask()

    def to_error(self) -> ModelError:
        """Classify the response and return the error to raise."""
        message, full_text = self._error_texts()
        lower = full_text.lower()
        if access_error := self._access_error(message):
            return access_error
        if self.status == 413 or (_contains_any(_CONTEXT_WORDS, lower) and self.status != 429):
            return self._make_error(
                "context_length", "reports that the conversation is too long for the model", message, full_text
            )
        if _contains_any(_TOOLS_WORDS, lower):
            hint = "let the model call tools in its text: pass --dialect text, or set `dialect` in the profile"
            return self._make_error("bad_request", "rejected the request", message, full_text, hint)
        if self.status in (429, 402) or _contains_any(("rate_limit", "insufficient_quota", "credit balance"), lower):
            return self._rate_limit_error(message, full_text)
        if self.status == 404 or _contains_any(_MODEL_WORDS, lower):
            return self._make_error("not_found", "did not find the model or endpoint", message, full_text)
        failed = self.status >= 500 or self.status in (408, 409)
        if failed or _contains_any(("overloaded", "server_error", "api_error"), lower):
            # Some servers report a chat template's role error as a server error; retrying it would not help.
            return self._make_error(
                "bad_request" if is_role_error(lower) else "server_error", "failed", message, full_text
            )
        return self._make_error("bad_request", "rejected the request", message, full_text)

    def _access_error(self, message: str) -> ModelError | None:
        """Return the error for a rejected certificate, key or address, else None."""
        if self.status in (400, 495, 496) and b"SSL certificate" in self.body:
            hint = "set a certificate that it accepts as the profile's `clientCert` (and `clientKey`)"
            return ModelError(f"{self.server} requires a client certificate", code="tls", hint=hint)
        if self.status in (401, 403):
            return self._key_error(message)
        return self._redirect_error() if 300 <= self.status < 400 else None

    def _error_texts(self) -> tuple[str, str]:
        """Return the message for the user, and the full text (code, type, message) to classify the error by."""
        try:
            document = read_json(self.body)
        except LooseJsonError:
            text = self.body.decode("utf-8", "replace").strip()
            document = "" if text.startswith("<") else text
        message, full_text = _parse_error_document(document)
        return clean_line(message, self.secret_mask), clean_line(full_text, self.secret_mask, 4000)

    def _key_error(self, message: str) -> ModelError:
        hint = "set OSTLER_API_KEY or the profile's apiKey"
        if not self.secret_mask.has_key:
            return ModelError(f"{self.server} requires an API key", code="key_refused", hint=hint, server_text=message)
        reason = f" ({message})" if message and self.status == 403 else ""
        source = self.secret_mask.key_source
        hint = f"correct it, or {hint}" if source else hint
        origin = f" from {source}" if source else ""
        return ModelError(
            f"{self.server} rejected the API key{origin}{reason}", code="key_refused", hint=hint, server_text=message
        )

    def _redirect_error(self) -> ModelError:
        location = clean_line(self.headers.get("location", ""), self.secret_mask)
        hint = f"if you trust it, set the base URL to {location}" if location else "check the base URL"
        return ModelError(
            f"{self.server} redirected the request; the API key was not sent to the new address",
            code="wrong_url",
            hint=hint,
        )

    def _rate_limit_error(self, message: str, full_text: str) -> ModelError:
        lower = full_text.lower()
        if self.status == 402 or (_contains_any(_QUOTA_WORDS, lower) and not _contains_any(_BURST_WORDS, lower)):
            hint = "add credit or switch to another model; a retry will not help"
            return self._make_error("quota", "reports that the quota is used up", message, full_text, hint)
        return self._make_error(
            "rate_limited", "reports too many requests", message, full_text, "wait a moment, then try again"
        )

    def _make_error(self, code: str, what: str, message: str, full_text: str, hint: str = "") -> ModelError:
        status = f" ({self.status})" if self.status != 200 else ""
        reason = f": {message}" if message else ""
        retry_after = parse_retry_after(self.headers)
        return ModelError(
            f"{self.server} {what}{status}{reason}",
            code=code,
            hint=hint,
            retry_after=retry_after,
            server_text=full_text,
        )


def is_role_error(error_text: str) -> bool:
    """Whether an error is about the roles of messages."""
    return _ROLE_ERROR.search(error_text.lower()) is not None


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait from `retry-after-ms` or `retry-after` (seconds or a date), or None."""
    milliseconds = _parse_number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "").strip()
    seconds = _parse_number(value)
    if seconds is not None or not value:
        return seconds
    import time
    from email.utils import parsedate_to_datetime

    try:
        return max(0.0, parsedate_to_datetime(value[:64]).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _parse_number(text: str) -> float | None:
    return float(text) if re.fullmatch(r"\d{1,12}(?:\.\d{1,9})?", text.strip()) else None


def _contains_any(words: tuple[str, ...], text: str) -> bool:
    return any(word in text for word in words)


def _parse_error_document(document: Any) -> tuple[str, str]:
    """Return message and full text from any of the formats that servers use for errors."""
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
    """Return one line of at most `limit` characters, with secrets masked and control characters removed."""
    text = _CONTROL_CHARS.sub(" ", secret_mask.apply(text)).strip()
    return text if len(text) <= limit else text[:limit] + "…"
