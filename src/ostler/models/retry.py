"""Asks again where that can help and harms nothing, and lets the person see it."""

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
    """How often and how patiently: a server may ask for a longer pause than ours, up to `longest` seconds."""

    attempts: int = 5
    base_pause: float = 0.5
    max_pause: float = 20.0
    max_wait: float = 60.0
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    jitter: Callable[[], float] = _random_fraction

    def pause(self, attempt: int, retry_after: float | None) -> float:
        """Seconds before the attempt after this one; spread out, so that many clients do not come back at once."""
        own = min(self.max_pause, self.base_pause * 2.0 ** (attempt - 1)) * (0.5 + self.jitter() / 2)
        return own if retry_after is None else max(own, retry_after)


async def stream_with_retries(attempt: Attempt, policy: RetryPolicy) -> AsyncGenerator[ReplyChunk, None]:
    """Play attempts until one succeeds.

    An `Again` says that the reply begins again: thoughts that came are void. Once words or calls have been
    passed on there is no second attempt.
    """
    number = 1
    while True:
        spoken = False
        try:
            async with aclosing(attempt(number)) as chunks:
                async for chunk in chunks:
                    spoken = spoken or isinstance(chunk, TextChunk | CallChunk)
                    yield chunk
            return
        except BackendError as error:
            if error.fault.code not in RETRYABLE_CODES:
                raise
            if spoken:
                raise _interrupted_error(error) from None
            if number >= policy.attempts:
                raise
            after = getattr(error, "retry_after", None)
            if after is not None and after > policy.max_wait:
                raise _wait_error(error, after) from None
            pause = policy.pause(number, after)
            reason = error.fault.message
        number += 1
        yield RetryScheduled(number, round(pause, 1), reason)
        await policy.sleep(pause)


def _interrupted_error(error: BackendError) -> BackendError:
    return BackendError(
        f"{error.fault.message}, so the reply is cut", code="cut", hint="what came is kept; ask to go on"
    )


def _wait_error(error: BackendError, retry_after: float) -> BackendError:
    import time

    until = time.strftime(
        "%H:%M" if retry_after < 72_000 else "%Y-%m-%d %H:%M", time.localtime(time.time() + min(retry_after, 1e9))
    )
    return BackendError(
        f"{error.fault.message}; it asks to wait until {until}",
        code=error.fault.code,
        hint="come back then, or take another model",
    )
