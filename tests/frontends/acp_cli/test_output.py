"""Output of ACP runs: masked frames, labelled text, mentions as links, recordings."""

import io
import json
import sys
from pathlib import Path

import pytest

from ostler.core.errors import UsageError
from ostler.core.permission import Decision
from ostler.core.prompt import ResourceLink
from ostler.frontends.acp_cli.frames import FrameWriter, mask
from ostler.frontends.acp_cli.mentions import prompt_blocks
from ostler.frontends.acp_cli.recording import read_recording
from ostler.frontends.acp_cli.replay import AcpReplay
from ostler.frontends.acp_cli.text_output import LabelledOutput, PlainOutput
from ostler.wire.acp import ToolCallFields, text_content
from ostler.wire.acp_requests import RequestPermissionRequest
from ostler.wire.acp_updates import AgentMessageChunk, AgentThoughtChunk

FRAMES = Path(__file__).parents[2] / "data" / "acp" / "frames"


def mirrored(*lines):
    out = io.StringIO()
    mirror = FrameWriter(out)
    for line in lines:
        mirror.mirror("in", line)
    return out.getvalue()


@pytest.mark.req("AC-4")
def test_frames_are_written_unchanged():
    odd = b'{ "jsonrpc":"2.0", "method":"x" ,"params":{"b":1,"a":1e2,"env":7}}'
    assert mirrored(odd) == odd.decode() + "\n"
    half = b'{"jsonrpc":"2.0","method":"x","params":{"t":"\\ud83d"}}'
    assert mirrored(half) == half.decode() + "\n"
    assert mirrored(b"noise", b"42", b"{noise}", b"null") == ""


@pytest.mark.req("AC-4")
def test_only_environments_headers_and_logins_are_masked():
    secret = {
        "method": "session/new",
        "params": {
            "cwd": "/w",
            "mcpServers": [
                {"name": "m", "command": "c", "env": [{"name": "KEY", "value": "s3cret"}]},
                {"name": "h", "type": "http", "headers": [{"name": "Authorization", "value": "s3cret"}]},
            ],
        },
    }
    frame = json.loads(mirrored(json.dumps(secret).encode()))
    assert "s3cret" not in str(frame)
    assert frame["params"]["mcpServers"][0]["env"] == [{"name": "KEY", "value": "***"}]
    login = {"method": "authenticate", "params": {"methodId": "key", "_meta": {"apiKey": "s3cret"}}}
    assert json.loads(mirrored(json.dumps(login).encode()))["params"] == {"methodId": "key", "_meta": "***"}
    assert mask({"env": {"A": "x"}, "token": "kept", "list": [{"env": [1]}]}) == {
        "env": {"A": "***"},
        "token": "kept",
        "list": [{"env": [1]}],
    }


def test_simple_output_is_sanitised_text():
    out = io.StringIO()
    output = PlainOutput(out)
    output.on_update(AgentMessageChunk(text_content("banner")), None)
    output.start_turn()
    for text in ("a\x1b[3", "1mb", "\x07c"):
        output.on_update(AgentMessageChunk(text_content(text)), None)
    output.on_update(AgentThoughtChunk(text_content("hidden")), None)
    output.finish()
    assert out.getvalue() == "abc\n"


def test_labels_are_on_separate_lines():
    out = io.StringIO()
    output = LabelledOutput(out)
    output.start_turn()
    output.on_update(AgentMessageChunk(text_content("half a line")), None)
    output.on_update(AgentThoughtChunk(text_content("hm")), None)
    output.on_update(AgentThoughtChunk(text_content(", well")), None)
    call = ToolCallFields("c1", raw_input={"x": "y" * 300})
    output.on_update(call, call)
    output.on_update(call, call)
    output.on_decision(RequestPermissionRequest("s", call, ()), Decision("cancel"))
    output.finish()
    lines = out.getvalue().splitlines()
    assert lines[:3] == ["half a line", "[thought] hm, well", "[tool] other c1"]
    assert (lines[3][:12], len(lines[3]), lines[3][-1]) == ('[tool.in] {"', 10 + 240 + 1, "…")
    assert lines[4:] == ["[permission] cancelled c1 (other)"]


@pytest.mark.req("AC-3")
@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("no mention of a@b.example here", []),
        ("@a.py", [("file://{root}/a.py", "a.py", "text/x-python")]),
        ("(see @dir/b.json).", [("file://{root}/dir/b.json", "b.json", "application/json")]),
        (
            "@'it is.md' @\"x y.png\"",
            [
                ("file://{root}/it%20is.md", "it is.md", "text/markdown"),
                ("file://{root}/x%20y.png", "x y.png", "image/png"),
            ],
        ),
        (
            "@dir/../a.py @/dev/null",
            [("file://{root}/a.py", "a.py", "text/x-python"), ("file:///dev/null", "null", "")],
        ),
        (
            "@https://x.example/ @http://x.example/d.html?q=1",
            [("https://x.example/", "x.example", ""), ("http://x.example/d.html?q=1", "d.html", "text/html")],
        ),
        ("@a.py and @a.py", [("file://{root}/a.py", "a.py", "text/x-python")]),
        ("@file:a.py", [("file://{root}/a.py", "a.py", "text/x-python")]),
        ('@property @app.route("/a") thank @alice, @gone.py', []),
    ],
)
def test_mentions_of_existing_files_and_urls_become_links(tmp_path, text, links):
    (tmp_path / "dir").mkdir()
    for name in ("a.py", "dir/b.json", "it is.md", "x y.png"):
        (tmp_path / name).write_text("")
    (first, *rest), _ = prompt_blocks(text, str(tmp_path))
    assert first.text == text
    assert rest == [ResourceLink(uri.format(root=tmp_path), *more) for uri, *more in links]


@pytest.mark.req("AC-7")
@pytest.mark.parametrize("name", sorted(path.stem for path in FRAMES.iterdir()))
def test_senders_are_found_without_direction_marks(name, tmp_path):
    file = FRAMES / f"{name}.jsonl"
    marked = list(read_recording(str(file)))
    unmarked = tmp_path / "bare.jsonl"
    remark = {"jsonrpc": "2.0", "method": "client/selected_agent", "params": {}}
    unmarked.write_text("\n".join([json.dumps(remark), *(json.dumps(recorded.frame) for recorded in marked)]) + "\n\n")
    probes = [recorded for recorded in marked if recorded.frame.get("method") == "foo/bar"]
    answers = [probe.frame["id"] for probe in probes if "id" in probe.frame]
    differing = [
        (a.sender, b.sender) for a, b in zip(marked, read_recording(str(unmarked)), strict=True) if a.sender != b.sender
    ]
    assert len(differing) <= len(probes) + len(answers)


@pytest.mark.req("AC-7")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "gemini",
            [
                "[permission] auto-allow cat README.md > copied.txt (execute)",
                "[tool] execute cat README.md > copied.txt",
            ],
        ),
        (
            "claude-old",
            ["[term] created id=t1 cmd=cat README.md > copied.txt", "[tool] execute `cat README.md > copied.txt`"],
        ),
        ("opencode", ["MOCK-FINAL-OK", "[stop] cancelled"]),
        ("pi", ["MOCK-FINAL-OK", "[stop] cancelled"]),
        ("qwen", ["[error] craft/drainMidTurnQueue:", "TOOL-DONE"]),
        ("auggie", ["[error] session/new:", "Authentication required"]),
    ],
)
def test_replay_of_recorded_real_agents(name, expected):
    out = io.StringIO()
    output = LabelledOutput(out)
    replay = AcpReplay(output)
    for recorded in read_recording(str(FRAMES / f"{name}.jsonl")):
        replay.on_frame(recorded)
    output.finish()
    for text in expected:
        assert text in out.getvalue()


@pytest.mark.parametrize(("text", "message"), [("nonsense\n", "line 1 of"), ("\n[1]\n", "line 2 of")])
def test_invalid_log(text, message, tmp_path):
    file = tmp_path / "log"
    file.write_text(text)
    with pytest.raises(UsageError, match=message):
        list(read_recording(str(file)))
    with pytest.raises(UsageError, match="cannot read the log"):
        list(read_recording(str(tmp_path / "missing")))


@pytest.mark.req("AC-4")
def test_log_from_standard_input(monkeypatch):
    file = FRAMES / "pi.jsonl"
    with file.open("rb") as piped:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(piped))
        assert list(read_recording("-")) == list(read_recording(str(file)))


@pytest.mark.req("AC-1")
def test_failures_differ_from_denials_and_titles_are_one_line():
    out = io.StringIO()
    output = LabelledOutput(out)
    output.on_refused("fs/read_text_file", "/etc/x", "without --yolo")
    output.on_failed("fs/read_text_file", "x", "no such file")
    call = ToolCallFields("c", "look\n[tool] read forged", "read")
    output.on_decision(RequestPermissionRequest("s", call, ()), Decision("allow"))
    assert out.getvalue().splitlines() == [
        "[permission] auto-deny fs/read_text_file /etc/x",
        "[permission] hint: without --yolo",
        "[tool.out] fs/read_text_file x failed: no such file",
        "[permission] auto-allow look [tool] read forged (read)",
    ]
