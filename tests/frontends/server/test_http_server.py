"""`ostler serve` as a process: it drains within seconds, and the next process continues what it did."""

import io
import time

import pytest
from tests.frontends.server.server_client import Gate, text_of
from tests.frontends.server.test_slow_clients import narrow_socket

from ostler.testing.model_server import calls, text

req = pytest.mark.req


@req("SV-12")
def test_termination_with_a_client_that_does_not_read_takes_at_most_five_seconds(models, serve_process):
    gate = Gate()
    with models.playing(text("x" * 3_000_000, chunks=30).hold_after(29, gate.wait)) as model:
        server = serve_process(model)
        with server.client.host() as host:
            slow = server.client.raw(host.id, sock=narrow_socket(server.port), max_queue=1)
            slow.send('{"type": "hello", "clientVersion": "slow"}')
            host.say("go")
            while len(text_of(host.frames)) < 2_800_000:
                host.receive()
            began = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - began < 5
            assert host.closed()[0] == 1012
            assert host.frames[-1]["code"] == "draining"
        gate.open()


@req("SV-9", "SV-10")
def test_chat_ends_with_an_error_when_the_server_stops_and_nothing_is_printed(models, serve_process):
    gate = Gate()
    with models.playing(text("one two", chunks=2).hold_after(2, gate.wait)) as model:
        server = serve_process(model)
        chat = server.client.open("POST", "/api/chat/stream", {"message": "hi"})
        assert b"content_chunk" in chat.readline()
        stderr, server.process.stderr = server.process.stderr, io.StringIO()
        assert server.stop() == 0
        assert chat.read().endswith(b"data: [ERROR]\n\n")
        assert stderr.read() == ""
        stderr.close()
        gate.open()


@req("SV-7", "SV-12")
@pytest.mark.parametrize("how", ["stop", "kill"])
def test_turn_with_an_open_call_continues_in_the_next_process(models, serve_process, how):
    with models.playing(calls([("ls", {"path": "."})]), text("Hello")) as model:
        server = serve_process(model)
        host = server.client.host(host={"id": "a", "name": "laptop"})
        host.say("go", clientMessageId="m1")
        call = host.wait("tool.call")
        getattr(server, how)()
        server.start()
        with server.client.host(host.id, host={"id": "a", "name": "laptop"}) as again:
            assert again.created["turnId"]
            assert again.wait("tool.call")["toolCallId"] == call["toolCallId"]
            again.answer(call, "a.txt")
            assert text_of(again.until_done()) == "Hello"
            again.say("go", clientMessageId="m1")
    roles = [message["role"] for message in model.requests[1].json["messages"]]
    assert roles.count("tool") == 1 and "a.txt" in model.requests[1].body.decode()


@req("SV-7", "SV-12")
def test_queue_and_session_survive_a_restart(models, serve_process):
    with models.playing(calls([("ls", {"path": "."})]), text("one"), text("two")) as model:
        server = serve_process(model)
        host = server.client.host(features=["queue"], root="/home/ada/app")
        host.say("first", clientMessageId="m1")
        call = host.wait("tool.call")
        host.say("second", clientMessageId="m2")
        host.wait("queue.changed")
        before = server.client.describe(host.id)
        server.stop()
        server.start()
        after = server.client.describe(host.id)
        assert {key: after[key] for key in ("epoch", "tools", "workspaceRoot")} == {
            key: before[key] for key in ("epoch", "tools", "workspaceRoot")
        }
        with server.client.host(host.id, root="/home/ada/app") as again:
            again.wait("tool.call")
            again.answer(call, "x")
            assert text_of(again.until_done()) == "one"
            assert text_of(again.until_done()) == "two"


@req("SV-5")
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--bind", "0.0.0.0:0"], "other machines can reach"),
        (["--bind", "nonsense"], "is not HOST:PORT"),
        (["--bind", "127.0.0.1:99999"], "is not HOST:PORT"),
        (["--expire", "-1"], "expire"),
        (["--unix", "socket", "--url", "https://team.example"], "--url has no meaning for a Unix socket"),
        (["--unix", "socket", "--tls-cert", "a", "--tls-key", "b"], "--tls-cert has no meaning"),
        (["--no-pairing"], "no valid token"),
    ],
)
def test_server_that_nobody_could_use_safely_does_not_start(ostler, models, flags, words):
    from tests.conftest import at

    with models.playing() as model:
        outcome = ostler("serve", *at(model), *flags)
    assert outcome.code == 2 and words in outcome.stderr and "Traceback" not in outcome.stderr
