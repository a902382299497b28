"""Connections that are cut: turns go on, and a client that resumes has what an uncut one has."""

import random

import pytest
from tests.frontends.server.server_client import Gate, text_of

from ostler.testing.model_server import calls, text

req = pytest.mark.req


def point(host, **fields):
    """Return the position of a client after the messages that it has processed."""
    seqs = [frame["seq"] for frame in host.frames if frame.get("seq") and frame["type"] != "error"]
    return {"epoch": host.created["epoch"], "lastSeq": max(seqs), **fields}


def unfinished(host):
    """Return the fields that name how much of the last message the client has."""
    deltas = [frame for frame in host.frames if frame["type"] == "assistant.delta"]
    if not deltas:
        return {}
    last = deltas[-1]
    return {"messageId": last["messageId"], "offset": last.get("offset", 0) + len(last["content"])}


@req("SV-7")
def test_turn_goes_on_without_any_client(models, serve):
    gate = Gate()
    with models.playing(text("Hello world", chunks=4).hold_after(3, gate.wait)) as model:
        client = serve(model).client
        host = client.host()
        host.say("go")
        host.wait("assistant.delta")
        host.cut()
        gate.open()
        with client.host(host.id, resume=point(host, **unfinished(host))) as again:
            assert again.created["resumed"]
            assert text_of([*host.frames, *again.until_done()]) == "Hello world"
        assert client.messages(host.id)[-1]["content"] == "Hello world"


@req("SV-7")
def test_client_that_was_away_for_the_whole_turn_gets_it(models, serve):
    with models.playing(text("Hello"), text("later", chunks=3)) as model:
        client = serve(model).client
        with client.host() as host, client.viewer(host.id) as other:
            host.run_turn("go")
            other.until_done()
            other.socket.close()
            host.run_turn("more")
            with client.viewer(host.id, resume=point(other)) as again:
                frames = again.until_done()
    assert text_of(frames) == "later" and [f["type"] for f in frames].count("assistant.done") == 1


@req("SV-7")
def test_events_are_replayed_exactly_once(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("Hello", chunks=3)) as model:
        client = serve(model).client
        with client.host(features=["events"]) as host:
            host.run_turn("go")
            created = host.frames[0]
            whole = {f["seq"]: f["event"] for f in host.frames if f["type"] == "event" and "delta" not in str(f)}
            for since in range(created["seq"], max(whole) + 1):
                resume = {"epoch": created["epoch"], "lastSeq": since}
                with client.viewer(host.id, features=["events"], resume=resume) as again:
                    seen = []
                    while not seen or seen[-1] < max(whole):
                        if since == max(whole):
                            break
                        frame = again.receive()
                        if frame["type"] == "event" and not frame["event"]["type"].endswith(("changed", "delta")):
                            seen.append(frame["seq"])
                    assert seen == sorted(set(seen)) and all(seq > since for seq in seen)


@req("SV-7")
@pytest.mark.parametrize(
    ("change", "reason"),
    [({"epoch": "another"}, "epoch"), ({"lastSeq": 10_000}, "ahead"), ({"lastSeq": -1}, "expired")],
)
def test_position_that_cannot_be_continued_gets_a_snapshot(models, serve, change, reason):
    with models.playing(text("Hello"), text("more")) as model:
        client = serve(model).client
        with client.host() as host:
            host.run_turn("go")
            with client.viewer(host.id, resume={**point(host), **change}) as again:
                assert not again.created.get("resumed")
                resync = again.receive()
                assert (resync["type"], resync["reason"]) == ("resync", reason)
                contents = [message["content"] for message in resync["snapshot"]["messages"]]
                assert contents == ["go", "Hello"] and resync["seq"] == point(host)["lastSeq"]
                host.run_turn("again")
                assert text_of(again.until_done()) == "more"


@req("SV-7")
def test_log_that_is_too_long_to_replay_gets_a_snapshot(models, serve):
    with models.playing(text("Hello")) as model:
        client = serve(model, replay_records=2).client
        with client.host() as host:
            host.run_turn("go")
            with client.viewer(host.id, resume={"epoch": host.created["epoch"], "lastSeq": 1}) as again:
                assert again.receive()["reason"] == "expired"


@req("SV-7")
def test_open_call_is_sent_again_with_the_same_id(models, serve):
    with models.playing(calls([("ls", {"path": "."})]), text("ok")) as model:
        client = serve(model).client
        host = client.host(host={"id": "a"})
        host.say("go")
        call = host.wait("tool.call")
        for _ in range(3):
            host.cut()
            host = client.host(host.id, host={"id": "a"})
            assert host.wait("tool.call")["toolCallId"] == call["toolCallId"]
        host.answer(call, "x")
        host.until_done()


@req("SV-7")
def test_message_sent_again_after_a_cut_starts_one_turn(models, serve):
    with models.playing(text("one")) as model:
        client = serve(model).client
        host = client.host()
        host.say("go", clientMessageId="m1")
        host.cut()
        with client.host(host.id, features=["queue"], resume=point(host)) as again:
            again.say("go", clientMessageId="m1")
            assert text_of(again.until_done()) == "one"
            assert (
                again.wait("message.accepted")["status"] in ("duplicate", "started")
                if not any(frame["type"] == "message.accepted" for frame in again.frames)
                else True
            )
        assert [m["role"] for m in client.messages(host.id)] == ["user", "assistant"]


@req("SV-7")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.sampled(every=3)
def test_transcript_after_random_cuts_equals_the_uncut_one(models, serve, seed):
    chance, words = random.Random(seed), "".join(f"word{number} äöü😀 " for number in range(60))
    replies = [
        text(words, chunks=40).with_pause(0.002),
        calls([("ls", {"path": "."})], text="Let me look"),
        text(words),
    ]
    with models.playing(*replies) as model:
        client = serve(model).client
        host, frames, cuts = client.host(), [], 0
        host.say("first", clientMessageId="m1")
        said, done = 1, 0
        while done < 2:
            if chance.random() < 0.15 and cuts < 30:
                cuts += 1
                fields = {**point(host), **unfinished(host)}
                host.cut()
                old, host = host, client.host(host.id, resume=fields)
                host.frames = [*old.frames, *host.frames]
                continue
            frame = host.receive()
            frames.append(frame)
            if frame["type"] == "tool.call":
                host.answer(frame, "x")
            if frame["type"] == "assistant.done":
                done += 1
            if done == 1 and said == 1:
                said = 2
                host.say("second", clientMessageId="m2")
        assert text_of(frames) == words + "Let me look" + words
        answers = [m["content"] for m in client.messages(host.id) if m["role"] == "assistant"]
        assert answers == [words, "Let me look", words]
        assert [f["type"] for f in frames].count("assistant.done") == 2
        host.socket.close()
