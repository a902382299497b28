"""Creating a client from a profile's values, and the errors for invalid ones."""

import subprocess
import sys

import pytest
from model_helpers import collect, text_of

from ostler.core.errors import UsageError
from ostler.models.anthropic_messages import AnthropicMessages
from ostler.models.client_factory import make_client
from ostler.models.openai_chat import OpenAIChat
from ostler.testing.model_server import ScriptedModelServer, text


@pytest.mark.req("MD-1")
@pytest.mark.parametrize(
    ("kind", "expected"), [("openai", OpenAIChat), ("", OpenAIChat), ("anthropic", AnthropicMessages)]
)
def test_kinds(kind, expected):
    client = make_client(api_kind=kind, base_url="http://localhost", model=" m ")
    assert type(client) is expected
    assert client.name == "m"


@pytest.mark.req("MD-1")
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"api_kind": "gopher"}, "openai or anthropic"),
        ({"model": " "}, "no model is set"),
        ({"base_url": "ftp://x"}, "http:// or https://"),
    ],
)
def test_invalid_values(values, message):
    with pytest.raises(UsageError, match=message):
        make_client(**({"api_kind": "openai", "base_url": "http://localhost", "model": "m"} | values))


async def test_headers_key_and_extra_fields_are_sent(client):
    async with ScriptedModelServer(text("a")) as server:
        model = client(
            server,
            base_url=f"http://127.0.0.1:{server.port}/v1/chat/completions/",
            api_key=" sk-1\n",
            headers={"X-Team": "blue"},
            extra={"top_k": 5},
        )
        assert text_of(await collect(model)) == "a"
    (request,) = server.requests
    assert request.headers["authorization"] == "Bearer sk-1"
    assert request.headers["x-team"] == "blue"
    assert request.json["top_k"] == 5


@pytest.mark.req("MD-3")
async def test_without_a_key_no_header_is_sent(client):
    async with ScriptedModelServer(text("a")) as server:
        await collect(client(server, api_key=""))
    assert "authorization" not in server.requests[0].headers


def test_only_the_needed_adapter_is_imported():
    code = (
        "import sys; from ostler.models.client_factory import make_client;"
        "make_client(api_kind='openai', base_url='http://localhost', model='m'); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "ostler.models.openai_chat" in loaded
    assert {"ostler.models.anthropic_messages", "ostler.models.server_models", "json", "httpx2"}.isdisjoint(loaded)
