"""`ostler run` where the server's window is smaller than anyone said: shorter requests, twice at most."""

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


def spoken(server):
    """The sizes of the requests of the conversation itself; those for a summary have no tools."""
    return [len(request.body) for request in server.requests if "tools" in request.json]


@pytest.mark.parametrize("who", TOO_LONG)
def test_a_refusal_for_its_length_is_answered_with_a_shorter_request(ostler, models, who):
    (ostler.workspace / "a.txt").write_text("alpha beta gamma\n" * 2_000)
    refused = status(*TOO_LONG[who])
    with models.playing(calls([("read", {"path": "a.txt"})]), refused, text("fine")) as server:
        done = ostler("run", *at(server), "look")
    assert done.code == 0, done.stdout + done.stderr
    first, second, third = spoken(server)
    assert first < third < second


def test_after_two_shorter_ones_it_is_given_up_with_a_reason(ostler, models):
    (ostler.workspace / "a.txt").write_text("alpha beta gamma\n" * 2_000)
    refused = status(*TOO_LONG["OpenAI"])
    asks = [calls([("read", {"path": "a.txt", "line": n})], text="so") for n in (1, 500, 900)]
    with models.playing(*asks, *[refused] * 12) as server:
        done = ostler("run", "-o", "json", *at(server), "look")
        sizes = spoken(server)
        server._script.clear()
    assert done.code == 1
    assert json.loads(done.stdout.splitlines()[-1])["error"]["code"] == "context_length"
    assert len(sizes) <= 3 + 3
