"""Retries a model call where that is safe, with backoff."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

import msgspec

from ostler.core.errors import BackendError
from ostler.models.model_errors import RETRYABLE_CODES
from ostler.models.model_types import CallChunk, ReplyChunk, RetryScheduled, TextChunk

Attempt = Callable[[int], AsyncGenerator[ReplyChunk, None]]


def _random_fraction() -> float:
    from random import random

    return random()


class RetryPolicy(msgspec.Struct, frozen=True):
    """Number of attempts and pauses between them. A server may request a longer pause, up to `max_wait` seconds."""

    attempts: int = 5
    base_pause: float = 0.5
    max_pause: float = 20.0
    max_wait: float = 60.0
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    jitter: Callable[[], float] = _random_fraction

    def pause(self, attempt: int, retry_after: float | None) -> float:
        """Return the seconds to wait after this attempt, with jitter so that clients do not all retry at once."""
        backoff = min(self.max_pause, self.base_pause * 2.0 ** (attempt - 1)) * (0.5 + self.jitter() / 2)
        return backoff if retry_after is None else max(backoff, retry_after)


async def stream_with_retries(attempt: Attempt, policy: RetryPolicy) -> AsyncGenerator[ReplyChunk, None]:
    """Run attempts until one succeeds.

    `RetryScheduled` announces that the reply starts again and that earlier thoughts are void. There is no retry once
    text or calls have been yielded.
    """
    number = 1
    while True:
        has_output = False
        try:
            async with aclosing(attempt(number)) as chunks:
                async for chunk in chunks:
                    has_output = has_output or isinstance(chunk, TextChunk | CallChunk)
                    yield chunk
            return
        except BackendError as error:
            if error.fault.code not in RETRYABLE_CODES:
                raise
            if has_output:
                raise _interrupted_error(error) from None
            if number >= policy.attempts:
                raise
            retry_after = getattr(error, "retry_after", None)
            if retry_after is not None and retry_after > policy.max_wait:
                raise _wait_error(error, retry_after) from None
            pause = policy.pause(number, retry_after)
            reason = error.fault.message
        number += 1
        yield RetryScheduled(number, round(pause, 1), reason)
        await policy.sleep(pause)


def _interrupted_error(error: BackendError) -> BackendError:
    return BackendError(
        f"{error.fault.message}; the reply is incomplete",
        code="cut",
        hint='the partial reply is saved; send "continue"',
    )


def _wait_error(error: BackendError, retry_after: float) -> BackendError:
    import time

    until = time.strftime(
        "%H:%M" if retry_after < 72_000 else "%Y-%m-%d %H:%M", time.localtime(time.time() + min(retry_after, 1e9))
    )
    return BackendError(
        f"{error.fault.message}; the server asks to wait until {until}",
        code=error.fault.code,
        hint="try again then, or switch to another model",
    )
