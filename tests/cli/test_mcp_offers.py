"""Resources of MCP servers as `@server:uri`, and their prompts as slash commands."""

import json

import pytest
from tests.conftest import at
from tests.mcp.configured_servers import call, configure, server

from ostler.testing.model_server import calls, text

pytestmark = pytest.mark.req("MC-4", "MC-6")


@pytest.fixture(params=["modern", "legacy"])
def memos(request, ostler):
    configure(ostler, {"memos": server(ostler, "memos", "--offers", "--era", request.param)})
    return ostler


def run(ostler, models, prompt, *flags):
    """Return the last message of the first request, and what was printed."""
    with models.playing(text("done")) as served:
        done = ostler("run", *at(served), *flags, prompt)
    assert done.code == 0, done.stderr
    return served.requests[0].json["messages"][-1]["content"], done


def refused(ostler, prompt):
    done = ostler("run", "--base-url", "http://127.0.0.1:9/v1", "--model", "none", prompt)
    assert done.code == 2
    return done.stderr


class TestResources:
    def test_mentioned_resource_is_attached(self, memos, models):
        with models.playing(text("done")) as served:
            done = memos("run", *at(served), 'read @memos:memo://one and @"memos:memo://with space".')
        sent = json.dumps(served.requests[0].json["messages"])
        assert "remember the milk" in sent
        assert "spaced" in sent
        assert "attached memos:memo://one (17 characters)" in done.stderr

    def test_image_is_attached_as_an_image(self, memos, models):
        content, done = run(memos, models, "look at @memos:memo://image")
        assert "data:image/png;base64,aGk=" in json.dumps(content)
        assert "attached memos:memo://image (image)" in done.stderr

    def test_text_that_is_sent_as_binary_is_attached(self, memos, models):
        with models.playing(text("done")) as served:
            memos("run", *at(served), "see @memos:memo://json")
        assert any('{"a": 1}' in str(message["content"]) for message in served.requests[0].json["messages"])

    @pytest.mark.parametrize(
        ("uri", "reason"),
        [("memo://nosuch", "Resource not found"), ("memo://zip", "binary"), ("memo://big", "too large (2,000,000")],
    )
    def test_resource_that_cannot_be_attached_is_reported(self, memos, models, uri, reason):
        content, done = run(memos, models, f"see @memos:{uri}")
        assert f"@memos:{uri} was not attached" in done.stderr
        assert reason in done.stderr
        assert len(json.dumps(content)) < 1000

    def test_resource_of_a_broken_server_is_reported(self, ostler, models):
        configure(ostler, {"bad": server(ostler, "bad", "--mode", "exit")})
        assert "@bad:x was not attached: the MCP server bad failed" in run(ostler, models, "see @bad:x")[1].stderr

    def test_pasted_mention_reads_nothing(self, memos, models):
        _, done = run(memos, models, "> see @memos:memo://one")
        assert "was not attached: the mention is pasted, quoted or in code" in done.stderr
        frames = memos.home / "memos" / "frames.jsonl"
        assert not frames.exists() or "resources/read" not in frames.read_text()

    def test_model_reads_the_resource_that_a_result_links_to(self, memos, models):
        memos("mcp", "test", "memos")
        script = [calls([("memos_picture", {})]), calls([("memos_read_resource", {"uri": "memo://one"})]), text("ok")]
        with models.playing(*script) as served:
            memos("run", "--allow", "memos_*", *at(served), "go")
        results = [message["content"] for message in served.requests[-1].json["messages"] if message["role"] == "tool"]
        assert "[resource memo: memo://one; memos_read_resource reads it]" in json.dumps(results[0])
        assert results[1] == "[resource memo://one]\nremember the milk"

    def test_reading_needs_permission_and_an_existing_resource(self, memos):
        arguments = '{"uri": "memo://nosuch"}'
        memos("mcp", "test", "memos")
        assert call(memos, "memos_read_resource", arguments)["status"] == "denied"
        assert "not found" in call(memos, "memos_read_resource", arguments, "--allow", "memos_*")["for_model"]


class TestPrompts:
    @pytest.mark.parametrize(
        ("command", "expected"),
        [
            ("/memos:plain", "plain {}"),
            ('/memos:review say "hi", don\'t go', 'review {"code": "say \\"hi\\", don\'t go"}'),
            ("/memos:review code=x=1", 'review {"code": "x=1"}'),
        ],
    )
    @pytest.mark.sampled(every=2)
    def test_is_a_command(self, memos, models, command, expected):
        assert run(memos, models, command)[0] == expected

    def test_arguments_by_position_and_by_name(self, memos, models):
        content, _ = run(memos, models, "/memos:mix c=z 'first one' the rest of it")
        shown = json.dumps(content)
        assert "data:image/png;base64,aGk=" in shown
        arguments = json.loads(content[0]["text"].partition("mix ")[2].partition("\n")[0])
        assert arguments == {"c": "z", "a": "first one", "b": "the rest of it"}
        assert "Assistant: Understood." in shown

    @pytest.mark.parametrize(
        ("command", "error"),
        [
            ("/memos:mix", "/memos:mix needs a. usage: /memos:mix <a> [b] [c]"),
            ("/memos:plain x", "/memos:plain takes no arguments"),
            ("/memos:empty", "returned no text for /memos:empty"),
            ("/memos:nosuch", "unknown command /memos:nosuch"),
            ("/other:plain", "unknown command /other:plain"),
        ],
    )
    def test_wrong_use_is_reported(self, memos, command, error):
        assert error in refused(memos, command).replace(" (usage", ". usage").replace("; usage", ". usage")

    def test_question_of_a_server_is_declined_in_a_headless_run(self, memos, models):
        content, _ = run(memos, models, "/memos:ask_me")
        assert "decline" in content or "not supported" in content

    def test_chat_lists_and_runs_them(self, memos, models):
        memos("mcp", "test", "memos")
        with models.playing(text("fine")) as served:
            done = memos("chat", *at(served), stdin="/help\n/memos:review abc\n/memos:revew abc\n")
        assert "/memos:review  Review. <code>" in done.stdout
        assert "\x1b[2J" not in done.stdout
        assert served.requests[0].json["messages"][-1]["content"] == 'review {"code": "abc"}'
        assert "did you mean /memos:review?" in done.stdout + done.stderr
