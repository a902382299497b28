"""A server with a smaller context window than expected: the request is shortened, at most twice."""

import json

import pytest

from ostler.testing.model_server import calls, status, text

pytestmark = pytest.mark.req("EN-8", "EN-9")

TOO_LONG = {
    "vLLM": (400, {"object": "error", "message": "This model's maximum context length is 4096 tokens.", "code": 400}),
    "llama.cpp": (400, {"error": {"code": 400, "message": "the request exceeds the available context size",
                                  "type": "exceed_context_size_error"}}),
    "OpenAI": (400, {"error": {"message": "too many", "code": "context_length_exceeded"}}),
    "Gemini": (400, [{"error": {"message": "The input token count (9) exceeds the maximum number of tokens allowed"}}]),
    "TGI": (422, {"error": "Input validation error: `inputs` must have less than 4096 tokens. Given: 9999"}),
    "a gateway": (413, "<html>413 Request Entity Too Large</html>"),
}  # fmt: skip


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def request_sizes(server):
    """Return the sizes of the conversation's requests; those for a summary have no tools."""
    return [len(request.body) for request in server.requests if "tools" in request.json]


@pytest.mark.parametrize("server_kind", TOO_LONG)
def test_too_long_request_is_shortened(ostler, models, server_kind):
    (ostler.workspace / "a.txt").write_text("alpha beta gamma\n" * 2_000)
    rejection = status(*TOO_LONG[server_kind])
    with models.playing(calls([("read", {"path": "a.txt"})]), rejection, text("fine")) as server:
        done = ostler("run", *at(server), "look")
    assert done.code == 0, done.stdout + done.stderr
    first, second, third = request_sizes(server)
    assert first < third < second


def test_gives_up_after_two_shorter_requests(ostler, models):
    (ostler.workspace / "a.txt").write_text("alpha beta gamma\n" * 2_000)
    rejection = status(*TOO_LONG["OpenAI"])
    reads = [calls([("read", {"path": "a.txt", "line": n})], text="so") for n in (1, 500, 900)]
    with models.playing(*reads, *[rejection] * 12) as server:
        done = ostler("run", "-o", "json", *at(server), "look")
        sizes = request_sizes(server)
        server._script.clear()
    assert done.code == 1
    assert json.loads(done.stdout.splitlines()[-1])["error"]["code"] == "context_length"
    assert len(sizes) <= 3 + 3


@pytest.mark.req("MD-8")
def test_window_of_the_server_is_shown_after_the_first_turn(ostler, models):
    """Both `/context` and the share of the context in `/status` use the limit that the server reports."""
    listed = {"id": "scripted", "object": "model", "owned_by": "vllm", "max_model_len": 24_000}
    with models.playing(text("one").with_usage(11_990, 10), models=[listed]) as server:
        done = ostler("chat", *at(server), stdin="hello\n/context\n/status\n")
    assert " of 24000 tokens" in done.stdout
    assert "context  50%" in done.stdout
