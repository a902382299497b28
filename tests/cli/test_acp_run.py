"""`ostler acp run`: services for the agent, policy files, closed pipes, trust, `acpcli`."""

import json
import shlex
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest
from tests.scripted_acp_agent import scripted_agent

from ostler import __version__

pytestmark = [pytest.mark.req("AC-1"), pytest.mark.timeout(180)]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def acp(ostler):
    """Return a function that runs the echo agent: `acp("--write", "!say hi")`."""
    settings = ostler.home / "settings.json"
    entry = {"command": sys.executable, "args": ["-m", "ostler.testing.echo_agent"]}
    settings.write_text(json.dumps({"agent_servers": {"echo": entry}}))
    return lambda *args, **more: ostler("acp", "run", "--settings", settings, *args, timeout=90, **more)


def test_services_for_the_agent(ostler, acp):
    more = ostler.home / "more"
    more.mkdir()
    (more / "far.txt").write_text("far away")
    (ostler.home / "mcp.json").write_text('{"mcpServers": {"files": {"command": "/bin/files"}}}')
    flags = ("--add-dir", more, "--mcp", ostler.home / "mcp.json", "--answer", "name=Ada", "--no-terminal")
    done = acp(*flags, "-o", "simple", f"!state\n!say |\n!read {more}/far.txt\n!say |\n!elicit name\n!say |\n!run ls")
    state, read, elicited, ran = done.stdout.split("|")
    parsed = json.loads(state)
    assert (parsed["directories"], parsed["mcp"][0]["name"]) == ([str(more)], "files")
    assert "terminal" not in parsed["client"]
    assert read == "far away"
    assert json.loads(elicited) == {"action": "accept", "content": {"name": "Ada"}}
    assert "terminal/create refused: -32601" in ran
    invalid = acp("--add-dir", "/nowhere", "hi")
    assert (invalid.code, invalid.stderr) == (2, "ostler: --add-dir /nowhere: no such folder\n")


@pytest.mark.req("MD-3")
def test_key_in_use_is_masked_for_the_agent(ostler, acp):
    (ostler.workspace / "s.txt").write_text("key: sk-proj-4f9d8a7b6c5e4d3c2b1a\n")
    done = acp("-o", "simple", "!read s.txt", env={"OPENAI_API_KEY": "sk-proj-4f9d8a7b6c5e4d3c2b1a"})
    assert (done.code, done.stdout) == (0, "key: ***WITHHELD-BY-OSTLER***\n")
    assert "ostler: a known secret appeared in this session; it was replaced by ***WITHHELD" in done.stderr


@pytest.mark.req("MD-3")
def test_key_in_use_is_masked_in_the_output_of_terminals(ostler, acp):
    (ostler.workspace / "s.txt").write_text("key: sk-proj-4f9d8a7b6c5e4d3c2b1a\n")
    done = acp("-o", "simple", "--write", "!run cat s.txt", env={"OPENAI_API_KEY": "sk-proj-4f9d8a7b6c5e4d3c2b1a"})
    assert "key: ***WITHHELD-BY-OSTLER*** (exit 0, cut False)" in done.stdout
    assert "4f9d8a7b" not in done.stdout


@pytest.mark.req("PM-4")
def test_policy_file_overrides_the_defaults(ostler, acp):
    (ostler.workspace / "policy.json").write_text(
        '{"bash": {"*": "deny", "echo *": "allow"}, "read": {"*.env": "deny"}}'
    )
    (ostler.workspace / "x.env").write_text("secret")
    done = acp("--policy", "policy.json", "--write", "!run echo yes\n!run ls\n!read x.env\n!write new/dir/f.txt made")
    assert "yes (exit 0, cut False)" in done.stdout
    assert "[permission] auto-deny terminal/create ls" in done.stdout
    assert "[permission] auto-deny fs/read_text_file x.env" in done.stdout
    assert (ostler.workspace / "new" / "dir" / "f.txt").read_text() == "made"
    (ostler.workspace / "policy.json").write_text('{"bash": "perhaps"}')
    assert acp("--policy", "policy.json", "hi").code == 2


@pytest.mark.req("CL-9")
def test_closed_pipe_ends_the_run(ostler):
    settings = ostler.home / "settings.json"
    entry = {"command": sys.executable, "args": ["-m", "ostler.testing.echo_agent"]}
    settings.write_text(json.dumps({"agent_servers": {"echo": entry}}))
    flags = ["--settings", str(settings), "-o", "jsonl", "!updates 50000"]
    command = f"{shlex.join([sys.executable, '-P', '-m', 'ostler', 'acp', 'run', *flags])} | head -n 1"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=ostler.workspace,
        env=ostler.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout.count("\n"), done.stderr) == (0, 1, "")


def test_project_file_needs_trust(ostler):
    (ostler.workspace / ".ostler").mkdir()
    entry = {"command": sys.executable, "args": ["-m", "ostler.testing.echo_agent"]}
    file = ostler.workspace / ".ostler" / "acp.json"
    file.write_text(json.dumps({"agent_servers": {"echo": entry}}))
    untrusted = ostler("acp", "run", "hi")
    assert (untrusted.code, "acp.json is ignored until you trust it" in untrusted.stderr) == (2, True)
    assert "no ACP agent is configured" in untrusted.stderr
    assert ostler("acp", "run", "--trust-project", "hi").stdout == "Echo: hi\n"
    assert "agent_servers.echo = " in ostler("trust", "--yes").stdout
    assert ostler("acp", "run", "hi") == ("Echo: hi\n", "", 0)
    file.write_text(json.dumps({"agent_servers": {"echo": {**entry, "env": {"A": "b"}}}}))
    assert ostler("acp", "run", "hi").code == 2


@pytest.mark.req("PM-8")
@pytest.mark.parametrize("place", ["workspace", "added folder"])
def test_hooks_of_a_trusted_folder_are_reviewed_again_after_a_turn_of_an_agent(ostler, acp, place):
    folder = ostler.workspace if place == "workspace" else ostler.home / "more"
    (folder / ".ostler").mkdir(parents=True)
    (folder / ".ostler" / "config.json").write_text('{"hooks": {"turn_end": [{"command": ["make", "hook"]}]}}')
    assert ostler("trust", "--yes", "--cwd", folder).code == 0
    acp("--list-modes", "--add-dir", folder)
    assert "is trusted" in ostler("trust", "--cwd", folder).stdout
    acp("--add-dir", folder, "!say hi")
    shown = ostler("trust", "--cwd", folder)
    assert (shown.code, "may have changed files" in shown.stdout) == (4, True)


@pytest.mark.req("EN-15", "PM-12")
def test_hooks_run_for_prompts_and_turns(ostler, acp):
    (ostler.home / ".ostler").mkdir()
    config = ostler.home / ".ostler" / "config.json"
    context = """echo '{"context": "hook context"}'"""
    hooks = {
        "prompt_submitted": [{"command": ["sh", "-c", context]}],
        "turn_end": [{"command": ["sh", "-c", "exit 2"]}],
    }
    config.write_text(json.dumps({"hooks": hooks}))
    done = acp("-o", "simple", "hi")
    assert (done.code, done.stdout) == (0, "Echo: hook context\nhi\n")
    assert "a hook objects to the end of this turn" in done.stderr
    hooks["prompt_submitted"][0]["command"] = ["sh", "-c", "echo not today >&2; exit 2"]
    config.write_text(json.dumps({"hooks": hooks}))
    denied = acp("--write", "!write a.txt x")
    assert (denied.code, denied.stdout) == (1, "")
    assert "a hook denied the prompt: not today" in denied.stderr
    assert not (ostler.workspace / "a.txt").exists()


def sent_prompt(done):
    """Return the blocks of the prompt in the frames of a run."""
    frames = [json.loads(line) for line in done.stdout.splitlines()]
    (prompt,) = [frame["params"]["prompt"] for frame in frames if frame.get("method") == "session/prompt"]
    return prompt


@pytest.mark.req("AC-3")
@pytest.mark.parametrize("typed", [[], ["see @a.md"]])
def test_mentions_in_piped_text_are_not_links(ostler, acp, typed):
    for name in ("README.md", "a.md"):
        (ostler.workspace / name).write_text("")
    done = acp("-o", "jsonl", *typed, stdin="@README.md @/etc/passwd @https://x.example/\n")
    text, *links = sent_prompt(done)
    assert text["text"].endswith("@README.md @/etc/passwd @https://x.example/")
    assert [link["name"] for link in links] == ["a.md" for _ in typed]
    assert "as a link" not in done.stderr


@pytest.mark.req("AC-3")
@pytest.mark.parametrize(
    ("mention", "reason"),
    [
        ("~/.pgpass", "may contain secrets"),
        (".env", "may contain secrets"),
        ("innocent.txt", "may contain secrets"),
        ("/etc/passwd", "is outside the workspace"),
        ("file:///etc/passwd", "is outside the workspace"),
        ("FILE:///etc/passwd", "is outside the workspace"),
        ("../more.txt", "is outside the workspace"),
        ("a.md", ""),
        (".", ""),
        ("https://x.example/.env", ""),
    ],
)
@pytest.mark.sampled(every=2)
def test_typed_mention_outside_or_with_secrets_is_named(ostler, acp, mention, reason):
    for file in (ostler.home / ".pgpass", ostler.workspace.parent / "more.txt"):
        file.write_text("")
    for name in (".env", "a.md"):
        (ostler.workspace / name).write_text("")
    (ostler.workspace / "innocent.txt").symlink_to(ostler.home / ".pgpass")
    done = acp("-o", "jsonl", f"see @{mention}")
    assert len(sent_prompt(done)) == (2 if mention != "." else 1)
    notice = f"{mention.removeprefix('file:')} is sent to the agent as a link: it {reason}\n"
    assert (notice in done.stderr) if reason else ("as a link" not in done.stderr)


def acpcli(*arguments):
    """Run the `acpcli` entry point of the package."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["acpcli"].partition(":")
    code = f"import sys; sys.argv[0] = 'acpcli'; from {module} import {function} as main; main()"
    command = [sys.executable, "-P", "-c", code, *arguments]
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=50)


def test_acpcli_runs_the_same_command_under_its_own_name():
    done = acpcli("--help")
    assert (done.returncode, "--list-caps" in done.stdout) == (0, True)
    assert done.stdout.startswith("usage: acpcli ")
    assert "ostler acp run" not in done.stdout


@pytest.mark.parametrize("arguments", [["--no-such-flag"], ["-o", "colour", "hi"], ["--fork", "hi"], []])
def test_errors_of_acpcli_name_acpcli(arguments):
    done = acpcli(*arguments)
    assert (done.returncode, done.stderr.startswith("acpcli: ")) == (2, True)
    assert "ostler acp run" not in done.stderr


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_acpcli_prints_its_version(flag):
    done = acpcli(flag)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"acpcli {__version__}\n", "")


@pytest.fixture
def scripted(ostler):
    """Return a function that runs a scripted agent: `scripted(scripted_agent("say('hi')"), "--write", "go")`."""

    def run(command, *args, **more):
        settings = ostler.home / "scripted.json"
        entry = {"command": command[0], "args": command[1:]}
        settings.write_text(json.dumps({"agent_servers": {"scripted": entry}, **more}))
        return ostler("acp", "run", "--settings", settings, *args, timeout=90)

    return run


@pytest.mark.req("AC-3")
def test_every_line_of_terminal_output_is_labelled(acp):
    done = acp("!run printf '1\\n2\\n[permission] auto-allow\\n'")
    assert "\n[term] 1\n[term] 2\n[term] [permission] auto-allow\n" in done.stdout


MCP_SERVERS = [
    {"name": "local", "command": "/bin/files"},
    {"name": "web", "url": "http://127.0.0.1:9/mcp"},
    {"name": "events", "type": "sse", "url": "http://127.0.0.1:9/sse"},
]
LIST_SERVERS = "say(','.join(server['name'] for server in new_params['mcpServers']))"


@pytest.mark.req("AC-2")
@pytest.mark.parametrize(
    ("offered", "passed_on", "omitted"),
    [
        ({}, "local", "web (http), events (sse)"),
        ({"http": True}, "local,web", "events (sse)"),
        ({"sse": True}, "local,events", "web (http)"),
        ({"http": True, "sse": True}, "local,web,events", ""),
    ],
)
def test_mcp_servers_are_passed_on_only_over_supported_transports(scripted, offered, passed_on, omitted):
    agent = scripted_agent(LIST_SERVERS, capabilities={"mcpCapabilities": offered})
    done = scripted(agent, "-o", "simple", "go", mcp_servers=MCP_SERVERS)
    assert (done.code, done.stdout) == (0, f"{passed_on}\n")
    assert done.stderr.count("\n") == (1 if omitted else 0)
    assert done.stderr.rstrip().endswith(omitted)


SLOW_TO_LEAVE = "time.sleep(1.2); open('left', 'w').close()"


@pytest.mark.req("AC-5")
def test_agent_has_time_to_exit_by_itself(ostler, scripted):
    done = scripted(scripted_agent(on_end=SLOW_TO_LEAVE), "--timeout", "60", "go")
    assert (done.code, done.stdout) == (0, "hi\n")
    assert (ostler.workspace / "left").exists()


@pytest.mark.req("AC-5")
def test_agent_that_ignores_the_end_of_its_input_is_stopped(ostler, scripted):
    done = scripted(scripted_agent(on_end="open('pid', 'w').write(str(os.getpid())); time.sleep(1000)"), "go")
    assert (done.code, done.stdout) == (0, "hi\n")
    pid = int((ostler.workspace / "pid").read_text())
    assert not Path(f"/proc/{pid}").exists()


READ_THEN_WRITE = """
    path = os.path.join(os.getcwd(), "new.txt")
    answer_to_read = ask("fs/read_text_file", path=path)
    if "result" in answer_to_read:
        ask("fs/write_text_file", path=path, content="made")
    say(json.dumps(answer_to_read.get("result") or answer_to_read["error"]["code"]))
"""


@pytest.mark.req("AC-7")
@pytest.mark.parametrize(("name", "shown"), [("gemini-cli", '{"content": ""}'), ("other", "-32002")])
def test_only_gemini_gets_empty_content_for_a_missing_file(ostler, scripted, name, shown):
    agent = scripted_agent(READ_THEN_WRITE, agent_info={"name": name, "version": "1"})
    done = scripted(agent, "--write", "-o", "simple", "go")
    assert (done.stdout, done.stderr) == (f"{shown}\n", "")
    assert (ostler.workspace / "new.txt").exists() == (name == "gemini-cli")


LATE_REPLAYS = {
    "one update": """
        say("OLD PROMPT", "user_message_chunk")
        say("OLD ")
        time.sleep(0.02)
        say("OLD ")
    """,
    "many updates": """
        for number in range(8):
            time.sleep(0.08)
            say("OLD PROMPT", "user_message_chunk")
            say("OLD ")
            update("tool_call", toolCallId="old", title="OLD", kind="read", status="completed")
            update("plan", entries=[{"content": "OLD", "priority": "high", "status": "pending"}])
    """,
    "answer long after the prompt": """
        say("OLD PROMPT", "user_message_chunk")
        time.sleep(0.5)
        say("OLD ")
    """,
    "nothing for a while": """
        time.sleep(0.4)
        say("OLD PROMPT", "user_message_chunk")
        say("OLD ")
    """,
}


@pytest.mark.req("AC-2")
@pytest.mark.parametrize("output", ["text", "simple"])
@pytest.mark.parametrize("replay", LATE_REPLAYS.values(), ids=LATE_REPLAYS.keys())
@pytest.mark.sampled(every=4)
def test_replay_that_ends_after_its_response_is_not_part_of_the_answer(scripted, replay, output):
    replay = textwrap.indent(textwrap.dedent(replay).strip(), "    ")
    agent = scripted_agent(
        "say('NEW')",
        capabilities={"loadSession": True},
        after_open=f"def replay():\n{replay}\nthreading.Thread(target=replay).start()",
    )
    done = scripted(agent, "--resume", "s", "-o", output, "go")
    assert (done.code, done.stdout, done.stderr) == (0, "NEW\n", "")


@pytest.mark.req("AC-2")
def test_resume_without_a_replay_is_not_delayed(scripted):
    agent = scripted_agent("say('NEW')", capabilities={"sessionCapabilities": {"resume": {}}})
    done = scripted(agent, "--resume", "s", "-o", "simple", "go")
    assert (done.code, done.stdout, done.stderr) == (0, "NEW\n", "")


@pytest.mark.req("AC-1")
@pytest.mark.parametrize("output", ["text", "simple"])
def test_text_after_the_end_of_the_turn_is_printed_only_if_it_follows_at_once(scripted, output):
    late = """
        def late():
            for word in ("b", "c", "d"):
                time.sleep(0.03)
                say(word)
            time.sleep(1)
            say("TOO LATE")
        say("a")
        threading.Thread(target=late).start()
    """
    done = scripted(scripted_agent(late, on_end="time.sleep(2)"), "-o", output, "go")
    assert (done.code, done.stdout, done.stderr) == (0, "abcd\n", "")


def decide(scripted, calls, *flags):
    """Return the decisions on permission requests for these calls."""
    agent = scripted_agent(f"say(json.dumps([request_permission(call) for call in {calls!r}]))")
    done = scripted(agent, "-o", "simple", *flags, "go")
    return dict(zip(map(json.dumps, calls), json.loads(done.stdout), strict=True))


def as_text(text):
    return [{"type": "content", "content": {"type": "text", "text": text}}]


FORBIDDEN = [
    *({"kind": kind, "title": "Do it"} for kind in ("read", "edit", "delete", "move", "Edit", "write")),
    *({"kind": kind, "rawInput": {"content": "x", "n": 1}} for kind in ("read", "edit", "delete", "move")),
    {"kind": "edit", "rawInput": {"k": "/etc/hosts"}},
    {"kind": "edit", "rawInput": {"a": [{"b": ["../../out.txt"]}]}},
    {"kind": "edit", "rawInput": {"changes": {"/etc/hosts": {}}}, "locations": [{"path": "a.txt"}]},
    {"kind": "edit", "rawInput": {"path": "a.txt", "also": "/etc/hosts"}},
    {"kind": "edit", "rawInput": {"paths": ["a.txt", "../b.txt"]}},
    {"kind": "edit", "rawInput": {"arguments": '{"file": "/etc/hosts"}'}},
    {"kind": "edit", "rawInput": {"path": "file:/etc/hosts"}},
    {"kind": "edit", "rawInput": {"path": "$HOME/x"}},
    {"kind": "edit", "rawInput": {"path": "~/x"}},
    {"kind": "edit", "title": "Write a.txt", "rawInput": {"k": "../x.txt"}},
    {"kind": "edit", "title": "Write /etc/hosts", "locations": [{"path": "a.txt"}]},
    {"kind": "edit", "title": "Write", "content": as_text("a.txt and /etc/hosts")},
    {"kind": "edit", "rawInput": {"patch": "*** Begin Patch\n*** Add File: ../x\n+x"}},
    {"kind": "delete", "rawInput": {"k": "/etc/hosts"}},
    {"kind": "move", "rawInput": {"from": "a.txt", "to": "../b.txt"}},
    {"kind": "read", "rawInput": {"k": "/etc/passwd"}},
    {"kind": "read", "title": "Read /etc/passwd"},
    {"kind": "search", "rawInput": {"dir": "/etc"}},
    {"kind": "other", "rawInput": {"k": "/etc/passwd"}},
    {"kind": "other", "title": "Look at ~/.ssh/id_rsa"},
    {"kind": "fetch", "rawInput": {"uri": "file:///etc/passwd"}},
    {"title": "Write /etc/hosts"},
    {"kind": "execute", "title": "Run", "rawInput": {"anything": "rm -rf /"}},
    {"kind": "execute", "title": "Run", "rawInput": ["sudo", "ls"]},
    {"kind": "execute", "title": "Run", "rawInput": {"command": "sh", "args": ["-c", "rm -rf /"]}},
    {"kind": "execute", "title": "Run", "rawInput": {"commands": ["ls", "sudo ls"]}},
    {"kind": "execute", "title": "Run", "content": as_text("`rm -rf /`")},
    {"kind": "execute", "title": "Run", "rawInput": {"command": "ls", "cwd": "/etc"}},
    {"kind": "read", "title": "Read", "rawInput": {"path": "a.txt", "cmd": "sudo ls"}},
    {"kind": "execute"},
    {"kind": "execute", "title": "Run"},
    {"kind": "execute", "title": "Run", "rawInput": {}},
    {"kind": "execute", "title": "Run", "rawInput": {"command": " "}},
    {"kind": "execute", "title": "Run the tests", "content": as_text("It takes a minute.")},
    {"kind": "shell", "title": "Terminal", "locations": [{"path": "a.txt"}]},
]
PERMITTED = [
    {"kind": "edit", "rawInput": {"k": "a.txt"}},
    {"kind": "edit", "rawInput": {"file_path": "src/new.py", "content": "/etc/hosts ../x"}},
    {"kind": "edit", "title": "Write notes.txt"},
    {"kind": "read", "title": "Read", "content": as_text("I read `src/a.py`.")},
    {"kind": "move", "rawInput": {"from": "a", "to": "b"}},
    {"kind": "search", "title": "grep '/api/v1'", "rawInput": {"pattern": "/api/v1"}},
    {"kind": "other", "title": "Ask a question"},
    {"kind": "think", "title": "Think about it (well)"},
    {"kind": "fetch", "rawInput": {"url": "https://example.com/a"}},
    {"kind": "execute", "title": "Run", "rawInput": {"command": "ls", "description": "rm (not really)", "cwd": "."}},
    {"kind": "execute", "title": "Run", "rawInput": {"line": "ls -l"}},
    {"kind": "execute", "title": "Run", "content": as_text("`ls -l`")},
    {"kind": "execute", "title": "ls", "content": as_text("It lists the files (all of them).")},
]


@pytest.mark.req("AC-1", "FS-3", "PM-4")
def test_paths_and_commands_are_checked_wherever_the_request_has_them(scripted):
    assert {call for call, answer in decide(scripted, FORBIDDEN, "--write").items() if answer != "reject_once"} == set()


@pytest.mark.req("AC-1", "PM-4")
def test_ordinary_requests_are_allowed(scripted):
    assert {call for call, answer in decide(scripted, PERMITTED, "--write").items() if answer != "allow_once"} == set()
