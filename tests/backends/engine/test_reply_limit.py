"""Limits apply to replies too: the server gets a maximum length, and a reply that exceeds it is cut off."""

import asyncio
import json

import pytest

from ostler.backends.engine.internal_agents import InternalAgents
from ostler.backends.engine.plugins.budget import Budget
from ostler.backends.engine.plugins.limits import TurnLimits
from ostler.backends.engine.plugins.plugin import BUILT_IN_AGENTS
from ostler.core.events import MessageDone, Notice, UsageReported
from ostler.models.client_factory import NetworkConfig, make_client
from ostler.models.fallback import COOLDOWN_SECONDS, FallbackModel, FallbackProfile
from ostler.models.model_settings import ModelSettings, Sampling
from ostler.models.model_types import TokenPrice
from ostler.testing.fake_tool import FakeTool
from ostler.testing.model_server import ScriptedModelServer, calls, raw, sse_event, sse_reply, status, text

pytestmark = pytest.mark.req("EN-12", "MD-8")

# Some 14,000 tokens, in chunks of five.
ENDLESS = text("".join(f"word{n:04d} " for n in range(5600)), chunks=2800)
ENDLESS_CALL = calls([("probe", {"subject": ENDLESS.text})])


def client(server, *, api="openai", price=None, max_tokens=None, **options):
    settings = ModelSettings(price=price, sampling=Sampling(max_tokens=max_tokens))
    network = NetworkConfig(environ={})
    return make_client(api_kind=api, base_url=server.base_url, model="m", network=network, settings=settings, **options)


def sent(server, name="max_tokens"):
    return [request.json.get(name) for request in server.requests]


async def test_server_gets_the_remaining_tokens(harness):
    async with ScriptedModelServer(text("as far as it").with_finish_reason("length").with_usage(60, 440)) as server:
        await harness.open(client(server), limits=TurnLimits(tokens=500))
        ended = await harness.turn("go")
    (max_tokens,) = sent(server)
    assert 400 < max_tokens < 500
    assert ended.reason == "limit"
    assert ended.limit == "the reply was truncated at 500 tokens; about 500 are used"


async def test_each_request_gets_less(harness):
    replies = [calls([("probe", {"n": n})]).with_usage(60 + 20 * n, 100) for n in range(2)]
    async with ScriptedModelServer(*replies, text("done").with_usage(100, 5)) as server:
        await harness.open(client(server, explain_cache=True), [FakeTool("probe")], limits=TurnLimits(tokens=800))
        assert (await harness.turn("go")).reason == "done"
    first, second, third = sent(server)
    assert 800 > first > second + 100 > third + 200 > 200
    notes = [event.text for event in harness.events if type(event).__name__ == "Notice"]
    assert [": all " in note for note in notes] == [False, True, True]


async def test_cost_limit_is_converted_to_tokens(harness):
    """One cent pays for 100 reply tokens if the request is free."""
    async with ScriptedModelServer(text("so much").with_finish_reason("length").with_usage(50, 100)) as server:
        await harness.open(client(server, price=TokenPrice(0.0, 100.0)), limits=TurnLimits(cost=0.01))
        ended = await harness.turn("go")
    assert sent(server) == [100]
    assert ended.limit == "the reply was truncated at $0.01; about $0.01 is used"


async def test_profile_limits_the_reply_if_it_is_lower(harness):
    async with ScriptedModelServer(text("done")) as server:
        await harness.open(client(server, max_tokens=200), limits=TurnLimits(tokens=9_000))
        assert (await harness.turn("go")).reason == "done"
    assert sent(server) == [200]


FULL = status(429, {"error": {"message": "no more", "code": "insufficient_quota"}})
EXPENSIVE = TokenPrice(0.0, 100.0)  # a cent pays for 100 tokens of a reply


def falling_back(usual, price, second, second_price=EXPENSIVE, clock=lambda: 0.0):
    spare = FallbackProfile("spare", lambda: client(second, price=second_price))
    return FallbackModel(client(usual, price=price), [spare], name="usual", clock=clock)


@pytest.mark.parametrize("price", [None, TokenPrice(), TokenPrice(0.0, 1.0), TokenPrice(0.0, 200.0)])
async def test_fallback_during_a_call_uses_its_own_price(harness, price):
    reply = text("so much").with_finish_reason("length").with_usage(50, 100)
    async with ScriptedModelServer(FULL) as first, ScriptedModelServer(reply) as second:
        await harness.open(falling_back(first, price, second), limits=TurnLimits(cost=0.01))
        ended = await harness.turn("go")
    assert sent(second) == [100]
    assert ended.limit == "the reply was truncated at $0.01; about $0.01 is used"


async def test_fallback_that_is_too_expensive_is_not_queried(harness):
    async with ScriptedModelServer(FULL) as first, ScriptedModelServer() as second:
        await harness.open(falling_back(first, TokenPrice(), second), limits=TurnLimits(cost=0.001))
        ended = await harness.turn("go")
    assert (ended.reason, ended.limit) == ("limit", "$0.001")


async def test_first_profile_is_limited_when_it_is_tried_again(harness):
    now = 0.0
    async with (
        ScriptedModelServer(FULL, text("expensive").with_usage(5, 5)) as usual,
        ScriptedModelServer(text("a")) as second,
    ):
        model = falling_back(usual, EXPENSIVE, second, TokenPrice(), clock=lambda: now)
        await harness.open(model, limits=TurnLimits(cost=0.01))
        await harness.turn("go")
        now = COOLDOWN_SECONDS + 1
        await harness.turn("continue")
    assert sent(usual) == [100, 100]
    notices = [event.text for event in harness.events if isinstance(event, Notice)]
    assert notices == ["retrying a profile that failed earlier; continuing with m (profile usual)"]


@pytest.mark.parametrize("limits", [TurnLimits(), TurnLimits(tokens=1_000_000), TurnLimits(cost=1.0)])
async def test_no_maximum_is_sent_if_no_limit_applies(harness, limits):
    """Servers refuse a maximum larger than their window, and a distant limit changes nothing."""
    async with ScriptedModelServer(text("done")) as server:
        await harness.open(client(server), limits=limits)
        await harness.turn("go")
    assert sent(server) == [None]


async def test_server_specific_parameter_name_is_used(harness):
    async with ScriptedModelServer(text("done"), text("done")) as server:
        await harness.open(client(server, extra={"max_completion_tokens": 50}), limits=TurnLimits(tokens=900))
        await harness.turn("go")
        await harness.open(client(server, extra={"max_completion_tokens": 5_000}), limits=TurnLimits(tokens=900))
        await harness.turn("go")
    fixed, limited = sent(server, "max_completion_tokens")
    assert (fixed, sent(server)) == (50, [None, None])
    assert 500 < limited < 900


async def test_profile_maximum_bounds_the_reservation(harness):
    async with ScriptedModelServer(text("done")) as server:
        assert client(server, api="anthropic").max_reply_tokens == 20_000
        assert client(server, api="anthropic", extra={"max_tokens": 64_000}).max_reply_tokens == 64_000
        assert client(server, extra={"max_completion_tokens": 300}, max_tokens=500).max_reply_tokens == 300
        assert client(server).max_reply_tokens is None
        await harness.open(client(server, api="anthropic"), limits=TurnLimits(tokens=30_000))
        await harness.turn("go")
    assert sent(server) == [20_000]


@pytest.mark.parametrize("api", ["openai", "anthropic"])
@pytest.mark.parametrize("reply", [ENDLESS, ENDLESS_CALL], ids=["words", "a call"])
async def test_server_that_does_not_stop_is_cut_off(harness, api, reply):
    async with ScriptedModelServer(reply) as server:
        await harness.open(client(server, api=api), [FakeTool("probe")], limits=TurnLimits(tokens=1_000))
        ended = await harness.turn("go")
    assert ended.reason == "limit"
    assert ended.limit.startswith("the reply was truncated at 1000 tokens; about ")
    assert ended.limit.endswith(" are used")
    (message,) = harness.events_of(MessageDone)
    assert len(json.dumps(message.message.text)) < len(ENDLESS.text) / 2


async def test_models_own_maximum_is_not_reported_as_the_limit(harness):
    async with ScriptedModelServer(text("so far").with_finish_reason("length").with_usage(60, 40)) as server:
        await harness.open(client(server), limits=TurnLimits(tokens=5_000))
        assert (await harness.turn("go")).limit == "the model's longest reply"


USAGE = {"prompt_tokens": 10, "completion_tokens": 5}


@pytest.mark.parametrize(
    "usage",
    [
        '{"prompt_tokens":-900,"completion_tokens":-900}',
        '{"prompt_tokens":NaN,"completion_tokens":NaN}',
        '{"prompt_tokens":-1e999,"completion_tokens":1e999}',
        '{"prompt_tokens":60,"completion_tokens":0}',
        '{"prompt_tokens":60,"completion_tokens":1,"cost":-5,"total_cost":NaN}',
        '{"prompt_tokens":null,"completion_tokens":"-3"}',
    ],
)
async def test_implausible_usage_is_estimated(harness, usage):
    """The first reply has about 560 tokens whatever the server reports, so less is left for the second."""
    arguments = json.dumps({"subject": "word " * 400})
    call = {"index": 0, "id": "a", "function": {"name": "probe", "arguments": arguments}}
    body = sse_event({"choices": [{"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]})
    reply_body = body + f'data: {{"choices":[],"usage":{usage}}}\n\n'.encode() + b"data: [DONE]\n\n"
    async with ScriptedModelServer(raw(reply_body), text("done")) as server:
        await harness.open(
            client(server, price=TokenPrice(0.0, 1000.0)), [FakeTool("probe")], limits=TurnLimits(cost=0.9)
        )
        assert (await harness.turn("go")).reason == "done"
    first, second = sent(server)
    assert first == 900
    assert second < 400
    assert all(count.cost is None or 0 <= count.cost < 1 for count in harness.events_of(UsageReported))


async def test_concurrent_turns_do_not_share_reserved_tokens(harness, tmp_path):
    """The second turn waits for the first and gets what it left."""
    from engine_harness import EngineHarness

    budget, other = Budget(tokens=1_000), EngineHarness(str(tmp_path))
    reply = text("first").with_usage(60, 340)
    async with ScriptedModelServer(reply.stall_after(2), text("second").with_usage(60, 5)) as server:
        await harness.open(client(server), budget=budget)
        await other.open(client(server), budget=budget)
        first_turn = asyncio.create_task(harness.turn("go"))
        await server.wait_for_requests(1)
        second_turn = asyncio.create_task(other.turn("go"))
        await asyncio.sleep(0)
        assert len(server.requests) == 1
        harness.session.turn.cancel()
        await first_turn
        assert (await second_turn).reason == "done"
        await other.session.aclose()
    first, second = sent(server)
    assert first + second > 1_000 - 200
    assert second > 100


async def test_concurrent_turn_that_fits_does_not_wait(harness, tmp_path):
    from engine_harness import EngineHarness

    budget, other = Budget(tokens=5_000), EngineHarness(str(tmp_path))
    async with ScriptedModelServer(text("first").stall_after(2), text("second")) as server:
        await harness.open(client(server, max_tokens=500), budget=budget)
        await other.open(client(server, max_tokens=500), budget=budget)
        first_turn = asyncio.create_task(harness.turn("go"))
        await server.wait_for_requests(1)
        assert (await other.turn("go")).reason == "done"
        harness.session.turn.cancel()
        await first_turn
        await other.session.aclose()


async def test_reply_that_ends_at_the_limit_is_complete(harness):
    """Received in one read, with the server's own end: nothing was cut off."""
    chunk = {"choices": [{"delta": {"content": "x" * 4000}, "finish_reason": "stop"}]}
    async with ScriptedModelServer(sse_reply(chunk, {"choices": [], "usage": USAGE})) as server:
        await harness.open(client(server), limits=TurnLimits(tokens=600))
        assert (await harness.turn("go")).reason == "done"


async def test_title_does_not_use_the_replys_budget(harness):
    async with ScriptedModelServer(text("done")) as server:
        await harness.open(
            client(server),
            limits=TurnLimits(tokens=2_000),
            internal_agents=InternalAgents(BUILT_IN_AGENTS.role, makes_titles=True),
        )
        assert (await harness.turn("go")).reason == "done"
        await harness.session.aclose()
    assert len(server.requests) == 1
