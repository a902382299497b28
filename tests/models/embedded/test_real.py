"""Tests with a real model: set OSTLER_TEST_MODEL_HOME to an Ostler home with an installed model.

OSTLER_HOME=/some/where ostler model install
OSTLER_TEST_MODEL_HOME=/some/where ./run test --slow tests/models/embedded/test_real.py
"""

import asyncio
import json
import os
from contextlib import asynccontextmanager

import pytest

from ostler.demo.project import write_project
from ostler.models.embedded.runtime import find_runtime
from ostler.models.embedded.server import CONTEXT_WINDOW, start_server
from ostler.models.embedded.weights_store import WeightsStore

HOME = os.environ.get("OSTLER_TEST_MODEL_HOME", "")
TIMEOUT = 3600

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(TIMEOUT),
    pytest.mark.req("MD-10"),
    pytest.mark.skipif(not HOME, reason="OSTLER_TEST_MODEL_HOME is not set"),
]


@asynccontextmanager
async def real_server():
    """Run a standalone server with a real model; yields the command line flags to use it."""
    store = WeightsStore({"OSTLER_HOME": HOME})
    weights = store.find()
    server = await start_server(weights.path.resolve(), find_runtime(store.folder) or "")
    try:
        yield ["--base-url", server.base_url, "--api-key", server.api_key, "--model", weights.name]
    finally:
        await server.stop()


def events(done, kind):
    records = map(json.loads, done.stdout.splitlines())
    return [record["event"] for record in records if record.get("event", {}).get("type") == kind]


def test_embedded_model_solves_the_demo(ostler):
    done = ostler("demo", "-m", "embedded", env={"OSTLER_HOME": HOME}, timeout=TIMEOUT)
    assert done.code == 0, done.stdout + done.stderr
    assert "does not replace a large model" in done.stdout


def test_first_request_is_short_and_its_prefix_is_cached_on_disk(ostler):
    write_project(ostler.workspace)
    flags = ["--ephemeral", "-o", "jsonl"]
    for _ in range(2):
        question = "what does with_discount in basket.py do?"
        done = ostler("run", "-m", "embedded", *flags, question, env={"OSTLER_HOME": HOME}, timeout=TIMEOUT)
        (usage,) = events(done, "usage_reported")
        assert usage["tokens_in"] < 550
    assert usage["tokens_cached"] >= 30


def test_embedded_model_edits_the_named_file(ostler):
    file = ostler.workspace / "words.py"
    file.write_text("def shout(text):\n    return text.upper()\n")
    prompt = "Add a function whisper(text) to words.py that returns the text in lower case."
    done = ostler("run", "-m", "embedded", "--write", prompt, env={"OSTLER_HOME": HOME}, timeout=TIMEOUT)
    assert done.code == 0, done.stdout + done.stderr
    names: dict[str, object] = {}
    exec(file.read_text(), names)
    assert (names["whisper"]("Ab"), names["shout"]("Ab")) == ("ab", "AB")


def test_doctor_accepts_embedded_model(ostler):
    done = ostler("doctor", "model", "-m", "embedded", env={"OSTLER_HOME": HOME}, timeout=TIMEOUT)
    assert done.code == 0, done.stdout
    assert f"{CONTEXT_WINDOW:,} tokens" in done.stdout


async def test_real_server_streams_and_reports_usage_and_window(ostler):
    async with real_server() as flags:
        prompt = "Reply with the single word: hello"
        arguments = ["run", *flags, "--agent", "plan", "--ephemeral", "--max-steps", "1", "-o", "jsonl", prompt]
        done = await asyncio.to_thread(ostler, *arguments, timeout=TIMEOUT)
    (usage,) = events(done, "usage_reported")
    assert usage["tokens_in"] > 100
    assert usage["tokens_out"] > 0
    assert usage["context_limit"] == CONTEXT_WINDOW
    assert len(events(done, "text_delta")) + len(events(done, "tool_called")) >= 1


async def test_doctor_checks_real_server(ostler):
    async with real_server() as flags:
        done = await asyncio.to_thread(ostler, "doctor", "model", *flags, "--dialect", "text", timeout=TIMEOUT)
    assert "✓ answers" in done.stdout
    assert f"{CONTEXT_WINDOW:,} tokens" in done.stdout
