"""Real models at work, for whoever asks for it: OSTLER_TEST_MODEL_HOME names an Ostler home with one installed.

OSTLER_HOME=/some/where ostler model install
OSTLER_TEST_MODEL_HOME=/some/where ./run test --slow tests/models/embedded/test_real.py
"""

import asyncio
import json
import os
from contextlib import asynccontextmanager

import pytest

from ostler.app.demo.project import TASK, TEST_COMMAND, write_project
from ostler.models.embedded.runtime import find_runtime
from ostler.models.embedded.server import CONTEXT_WINDOW, start_server
from ostler.models.embedded.weights_store import WeightsStore

HOME = os.environ.get("OSTLER_TEST_MODEL_HOME", "")
PATIENCE = 3600

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(PATIENCE),
    pytest.mark.req("MD-10"),
    pytest.mark.skipif(not HOME, reason="OSTLER_TEST_MODEL_HOME names no Ostler home with a model"),
]


@asynccontextmanager
async def real_server():
    """A real server with a real model, apart from any Ostler: the flags that lead to it."""
    store = WeightsStore({"OSTLER_HOME": HOME})
    weights = store.find()
    serving = await start_server(weights.path.resolve(), find_runtime(store.folder) or "")
    try:
        yield ["--base-url", serving.base_url, "--api-key", serving.api_key, "--model", weights.name]
    finally:
        await serving.stop()


def events(done, kind):
    records = map(json.loads, done.stdout.splitlines())
    return [record["event"] for record in records if record.get("event", {}).get("type") == kind]


def test_the_embedded_model_mends_the_demo(ostler):
    done = ostler("demo", "-m", "embedded", env={"OSTLER_HOME": HOME}, timeout=PATIENCE)
    assert done.code == 0, done.stdout + done.stderr
    assert "does not replace a large model" in done.stdout


def test_what_it_has_read_it_need_not_read_again(ostler):
    write_project(ostler.workspace)
    flags = ["--ephemeral", "--write", "--allow", f"bash:{TEST_COMMAND} *", "--max-steps", "3", "-o", "jsonl"]
    done = ostler("run", "-m", "embedded", *flags, TASK, env={"OSTLER_HOME": HOME}, timeout=PATIENCE)
    first, *others = events(done, "usage_reported")
    assert first["tokens_in"] < 550
    for before, after in zip([first, *others], others, strict=False):
        assert after["tokens_cached"] >= 0.9 * before["tokens_in"]


def test_the_doctor_finds_it_well(ostler):
    done = ostler("doctor", "model", "-m", "embedded", env={"OSTLER_HOME": HOME}, timeout=PATIENCE)
    assert done.code == 0, done.stdout
    assert f"{CONTEXT_WINDOW:,} tokens" in done.stdout


async def test_a_real_server_streams_counts_and_tells_its_window(ostler):
    async with real_server() as flags:
        prompt = "Reply with the single word: hello"
        arguments = ["run", *flags, "--agent", "plan", "--ephemeral", "--max-steps", "1", "-o", "jsonl", prompt]
        done = await asyncio.to_thread(ostler, *arguments, timeout=PATIENCE)
    (usage,) = events(done, "usage_reported")
    assert usage["tokens_in"] > 100
    assert usage["tokens_out"] > 0
    assert usage["context_limit"] == CONTEXT_WINDOW
    assert len(events(done, "text_delta")) + len(events(done, "tool_called")) >= 1


async def test_the_doctor_examines_a_real_server(ostler):
    async with real_server() as flags:
        done = await asyncio.to_thread(ostler, "doctor", "model", *flags, "--dialect", "text", timeout=PATIENCE)
    assert "✓ answers" in done.stdout
    assert f"{CONTEXT_WINDOW:,} tokens" in done.stdout
