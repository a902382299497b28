"""Model lists of each kind of server."""

import pytest

from ostler.core.errors import BackendError
from ostler.http.client import HttpClient
from ostler.http.dialer import Dialer
from ostler.models.base_url import parse_base_url
from ostler.models.server_models import list_models, parse_entries
from ostler.testing.model_server import ScriptedModelServer


@pytest.mark.parametrize(
    ("document", "names"),
    [
        ({"data": [{"id": "a"}, {"id": "b/c:1"}]}, ["a", "b/c:1"]),
        ({"models": [{"name": "a"}, {"model": "b"}]}, ["a", "b"]),
        ([{"id": "a"}], ["a"]),
        ({"data": [{"id": "a\x1b[2J"}, {"id": "b\nc"}, {"id": 5}, {"id": "x" * 500}, None, "d", {}]}, []),
        ({"data": "no"}, []),
        ({"data": [{"id": str(number)} for number in range(5000)]}, [str(number) for number in range(2000)]),
        ({}, []),
        (None, []),
    ],
)
def test_lists_in_any_shape(document, names):
    assert [entry.id for entry in parse_entries(document)] == names


@pytest.mark.parametrize(
    ("page", "code"), [("<html>", "wrong_url"), (None, "not_found"), ("x" * 5_000_000, "malformed")]
)
async def test_invalid_lists(page, code, monkeypatch):
    async with ScriptedModelServer(models=[]) as server:
        base = parse_base_url(server.base_url if page is not None else f"http://127.0.0.1:{server.port}/elsewhere")
        monkeypatch.setattr("ostler.testing.model_server.json.dumps", lambda _: page or "{}")
        if page is None:
            server._pages["/elsewhere/models"] = None
        http = HttpClient(Dialer(base.origin))
        with pytest.raises(BackendError) as caught:
            await list_models(http, base)
        await http.aclose()
    assert caught.value.fault.code == code
