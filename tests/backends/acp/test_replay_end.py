"""When the replay of a loaded session counts as ended."""

import asyncio

import pytest

from ostler.backends.acp import replay_end
from ostler.backends.acp.replay_end import ReplayEnd
from ostler.wire.acp_updates import decode_update

pytestmark = pytest.mark.req("AC-2")
USER, AGENT = (
    decode_update({"sessionUpdate": f"{role}_message_chunk", "content": {"type": "text", "text": "x"}})
    for role in ("user", "agent")
)


async def is_over_at_once(replay):
    waiting = asyncio.ensure_future(replay.wait())
    await asyncio.sleep(0)
    over = waiting.done()
    waiting.cancel()
    await asyncio.wait({waiting})
    return over


async def test_session_that_is_not_replayed_is_not_waited_for():
    replay = ReplayEnd(expected=False)
    replay.on_opened()
    assert await is_over_at_once(replay)


@pytest.mark.parametrize(("expected", "updates"), [(True, [USER, AGENT]), (True, []), (False, [USER, AGENT])])
async def test_replay_is_over_only_after_a_quiet_period(monkeypatch, expected, updates):
    monkeypatch.setattr(replay_end, "QUIET_SECONDS", 1000.0)
    monkeypatch.setattr(replay_end, "INCOMPLETE_QUIET_SECONDS", 1000.0)
    monkeypatch.setattr(replay_end, "MAX_SECONDS", 1000.0)
    replay = ReplayEnd(expected=expected)
    for update in updates:
        replay.on_update(update)
    replay.on_opened()
    assert not await is_over_at_once(replay)


@pytest.mark.parametrize("updates", [[], [USER], [AGENT, USER]])
async def test_incomplete_replay_is_waited_for_longer(monkeypatch, updates):
    monkeypatch.setattr(replay_end, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(replay_end, "INCOMPLETE_QUIET_SECONDS", 1000.0)
    monkeypatch.setattr(replay_end, "MAX_SECONDS", 1000.0)
    replay = ReplayEnd(expected=True)
    for update in updates:
        replay.on_update(update)
    replay.on_opened()
    assert not await is_over_at_once(replay)
    replay.on_update(AGENT)
    async with asyncio.timeout(60):
        await replay.wait()


async def test_endless_replay_is_waited_for_a_limited_time(monkeypatch):
    monkeypatch.setattr(replay_end, "QUIET_SECONDS", 1000.0)
    monkeypatch.setattr(replay_end, "MAX_SECONDS", 0.05)
    replay = ReplayEnd(expected=True)
    replay.on_update(AGENT)
    replay.on_opened()
    async with asyncio.timeout(60):
        await replay.wait()
