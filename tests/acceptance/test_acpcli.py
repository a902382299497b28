"""Specification 004, acpcli: its ten end-to-end scenarios, with the echo agent."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.timeout(300)  # many runs in one test
req = pytest.mark.req
ECHO = ["-m", "ostler.testing.echo_agent"]


class Acpcli:
    """`acpcli` in a workspace, with a settings file that lists echo agents."""

    def __init__(self, ostler):
        self._ostler = ostler
        self.workspace = ostler.workspace
        self.settings = ostler.home / "settings.json"
        self.agents({"echo": {}})

    def agents(self, agents, **more):
        """Write the settings: each agent is the echo agent with its own `args` and `env`."""
        entries = {
            name: {"command": sys.executable, "args": [*ECHO, *options.get("args", [])], "env": options.get("env", {})}
            for name, options in agents.items()
        }
        self.settings.write_text(json.dumps({"agent_servers": entries, **more}))

    def __call__(self, *args, **options):
        return self._ostler("acp", "run", "--settings", self.settings, *args, timeout=120, **options)

    @contextlib.contextmanager
    def started(self, *args):
        """Start it and yield the running process."""
        command = [sys.executable, "-P", "-m", "ostler", "acp", "run", "--settings", str(self.settings), *args]
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command,
            cwd=self.workspace,
            env=self._ostler.environment(),
            stdin=subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def acpcli(ostler):
    return Acpcli(ostler)


def frames(output):
    return [json.loads(line) for line in output.splitlines()]


def has_ended(pid):
    with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/stat") as file:
        return file.read().split()[2] == "Z"
    return True


@req("AC-1", "AC-2")
def test_01_basic_prompt_execution(acpcli):
    """A prompt, as an argument or on stdin, reaches the agent; its message is printed and the exit code is 0."""
    assert acpcli("--", "--summarize", "README.md") == ("Echo: --summarize README.md\n", "", 0)
    assert acpcli(stdin="from a pipe\n") == ("Echo: from a pipe\n", "", 0)
    assert acpcli("Review this", stdin="print(1)\n").stdout == "Echo: Review this\n\nprint(1)\n"


@req("AC-1", "AC-8")
def test_02_agent_selection(acpcli):
    """`-a` selects an agent, the first is the default; it gets its `args`, and its `env` in addition to ours."""
    first = {"args": ["one"], "env": {"WHO": "first"}}
    acpcli.agents({"zeta": first, "alpha": {"args": ["two", "words"], "env": {"WHO": "second"}}})
    orders = "!args\n!say /\n!env WHO\n!say /\n!env OURS_TOKEN"
    assert acpcli(orders, env={"OURS_TOKEN": "kept"}).stdout == "one/first/kept\n"
    assert acpcli("-a", "alpha", orders, env={"OURS_TOKEN": "kept"}).stdout == "two words/second/kept\n"


@req("AC-1", "AC-4")
def test_03_output_modes(acpcli):
    """`text` labels plan, tool, diff and terminal lines; `simple` has only the message; `jsonl` every frame."""
    orders = "!think deep\n!say words\n!plan\n!tool read Look\n!diff a.txt\n!run echo hi\n!unknown\n!usage"
    text = acpcli(orders).stdout
    workspace = acpcli.workspace
    assert "[thought] deep\nwords\n[plan] {" in text
    assert f"[tool] read Look @ {workspace}/a.txt:3\n[tool.in] {{" in text
    assert "[tool.out] {" in text
    assert "…\n" in text
    assert f'[diff] {{"path":"{workspace}/a.txt","oldText":"old\\n","newText":"new\\n"}}\n' in text
    for line in ("created id=terminal-1 cmd=echo hi", "exited id=terminal-1 code=0", "released id=terminal-1"):
        assert f"[term] {line}\n" in text
    assert '[update] {"sessionUpdate":"dance"' in text
    assert text.endswith("[usage] in=10 out=20 context=1200/200000\n")
    assert acpcli("-o", "simple", orders).stdout == "wordshi (exit 0, cut False)\n"

    acpcli.agents(
        {"echo": {"env": {"A_KEY": "s3cret"}}},
        mcp_servers=[{"name": "m", "command": "/bin/mcp", "args": ["--stdio"], "env": {"M_KEY": "h1dden"}}],
    )
    done = acpcli("-o", "jsonl", f"{orders}\n!junk noise")
    logged = frames(done.stdout)
    assert [frame["jsonrpc"] for frame in logged] == ["2.0"] * len(logged)
    assert logged[0] == {
        "jsonrpc": "2.0",
        "method": "client/selected_agent",
        "params": {"name": "echo", "command": sys.executable},
    }
    methods = [frame["method"] for frame in logged if "method" in frame]
    asked = [method for method in methods if method != "session/update"]
    assert asked[1:4] == ["initialize", "session/new", "session/prompt"]
    assert {"session/update", "terminal/create", "terminal/wait_for_exit", "terminal/release"} <= set(methods)
    assert sum("result" in frame for frame in logged) == sum("id" in frame and "method" in frame for frame in logged)
    assert "s3cret" not in done.stdout
    assert "h1dden" not in done.stdout
    (opened,) = [frame["params"] for frame in logged if frame.get("method") == "session/new"]
    (server,) = opened["mcpServers"]
    assert server == {
        "name": "m",
        "command": "/bin/mcp",
        "args": ["--stdio"],
        "env": [{"name": "M_KEY", "value": "***"}],
    }
    assert frames(acpcli("-o", "json", "--list-caps").stdout)[0] == logged[0]


@req("AC-1", "AC-2")
def test_04_list_operations(acpcli):
    """`--list-caps`, `--list-modes` and `--list-commands`, alone or together, print lists and send no prompt."""
    acpcli.agents({"echo": {"args": ["--store", str(acpcli.workspace.parent / "store")]}})
    caps, modes, commands = acpcli("--list-caps", "--list-modes", "--list-commands").stdout.split("# ")[1:]
    assert caps.startswith("Capabilities (echo)\nProtocol Version: 1\n- loadSession\n")
    assert modes == "Modes (echo)\nCurrent: ask\nAvailable:\n- ask: Ask\n- code: Code\n"
    assert commands == "Commands (echo)\n- /init - begin\n- /plan - make a plan [what to plan]\n"
    assert acpcli("--list-modes", "hello").stdout.endswith("- code: Code\nEcho: hello\n")

    logged = frames(acpcli("-o", "jsonl", "--list-caps", "--list-modes", "--list-commands").stdout)
    methods = [frame.get("method") for frame in logged]
    assert "session/prompt" not in methods
    by_method = {frame["method"]: frame["params"] for frame in logged if "method" in frame}
    assert by_method["client/capabilities"]["agentCapabilities"]["loadSession"] is True
    assert by_method["client/modes"] == {
        "current": "ask",
        "available": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
    }
    assert by_method["session/update"]["update"]["availableCommands"][0]["name"] == "init"
    assert "session/new" not in [frame.get("method") for frame in frames(acpcli("-o", "json", "--list-caps").stdout)]

    acpcli.agents({"bare": {"args": ["--no-modes", "--no-commands"]}})
    assert acpcli("--list-modes", "--list-commands").stdout == (
        "# Modes (bare)\n(no modes)\n# Commands (bare)\n(no commands)\n"
    )
    (update,) = [frame for frame in frames(acpcli("-o", "json", "--list-commands").stdout) if "update" in str(frame)]
    assert update["params"]["update"] == {"sessionUpdate": "available_commands_update", "availableCommands": []}


TABLE = [  # "Permission Model" of the specification: operation, allowed by default, with --write, with --yolo
    ("!read in.txt", (True, True, True)),
    ("!read ../out.txt", (False, False, True)),
    ("!write new.txt text", (False, True, True)),
    ("!write ../new.txt text", (False, False, False)),
    ("!run true", (True, True, True)),
    ("!ask read in.txt", (True, True, True)),
    ("!ask read ../out.txt", (False, False, True)),
    ("!ask edit in.txt", (False, True, True)),
    ("!ask delete in.txt", (False, True, True)),
    ("!ask move in.txt", (False, True, True)),
    ("!ask edit ../out.txt", (False, False, False)),
    ("!ask execute ls", (True, True, True)),
    ("!ask fetch page", (True, True, True)),
    ("!ask execute rm -rf /", (False, False, False)),
]


@req("AC-1", "PM-4", "FS-3", "SH-3", "SH-6")
@pytest.mark.parametrize(("column", "flags"), [(0, []), (1, ["--write"]), (2, ["--yolo"])])
def test_05_permission_flags(acpcli, column, flags):
    """Reads and writes, inside and outside, with no flag, `--write` and `--yolo`: the whole permission table."""
    (acpcli.workspace / "in.txt").write_text("inside")
    (acpcli.workspace.parent / "out.txt").write_text("outside")
    done = acpcli(*flags, "\n".join(f"{order}\n!say |" for order, _ in TABLE))
    *outputs, _ = done.stdout.split("|")
    for (order, passes), output in zip(TABLE, outputs, strict=True):
        denied = "refused" in output or output.endswith("[no]")
        assert denied == (not passes[column]), (order, output)
        assert ("[permission] auto-deny" in output) == denied
        if "!ask" in order:
            verdict = "allow" if passes[column] else "deny"
            assert f"[permission] auto-{verdict} {order.removeprefix('!ask ')}" in output
    assert done.code == 0
    assert (acpcli.workspace / "new.txt").exists() == bool(column)
    assert not (acpcli.workspace.parent / "new.txt").exists()
    if column:
        return
    assert acpcli("-o", "simple", "--fail-on-deny", "!ask edit in.txt") == ("[no]\n", "", 4)
    logged = frames(acpcli("-o", "jsonl", *flags, "!ask read in.txt").stdout)
    (decision,) = [frame["params"] for frame in logged if frame.get("method") == "client/permission_decision"]
    assert (decision["toolKind"], decision["decision"]) == ("read", "allow")


@req("AC-1", "AC-2")
@pytest.mark.parametrize("flags", [[], ["--resume"]])
def test_06_session_management(acpcli, flags):
    """`--save-session` writes the id, `--resume` loads it; it is an error if the agent cannot load sessions."""
    store = str(acpcli.workspace.parent / "store")
    acpcli.agents({"echo": {"args": ["--store", store, *flags]}, "forgetful": {"args": ["--no-load"]}})
    assert acpcli("--save-session", "id.txt", "first words").code == 0
    session = (acpcli.workspace / "id.txt").read_text().strip()
    assert acpcli("--resume", session, "more words") == ("Echo: more words\n", "", 0)
    if flags:
        methods = [frame.get("method") for frame in frames(acpcli("-o", "jsonl", "--resume", session, "x").stdout)]
        assert "session/resume" in methods
        return
    assert session in acpcli("--list-sessions").stdout
    assert acpcli("--delete-session", session).code == 0
    lost = acpcli("--resume", session, "x")
    assert (lost.code, "there is no session" in lost.stderr) == (1, True)
    cannot = acpcli("-a", "forgetful", "--resume", session, "x")
    assert (cannot.code, cannot.stderr) == (2, "ostler: forgetful cannot resume sessions\n")


@req("AC-1", "AC-2")
@pytest.mark.parametrize("flag", [[], ["--config"]])
def test_07_mode_switching(acpcli, flag):
    """`--mode` sets the mode before the prompt is sent; an unknown mode is an error that lists the modes."""
    acpcli.agents({"echo": {"args": flag}, "models": {"args": ["--models"]}})
    state = json.loads(acpcli("--mode", "code", "!state").stdout)
    assert (state["set"].get("the-mode") if flag else state["mode"]) == "code"
    unknown = acpcli("--mode", "edit", "!state")
    assert (unknown.code, unknown.stdout) == (2, "")
    assert unknown.stderr == "ostler: echo has no mode 'edit'; available: ask, code\n"
    state = json.loads(acpcli("-a", "models", "--model", "large", "!state").stdout)
    assert state["set"] == {"model": "large"}
    if flag:
        state = json.loads(acpcli("--model", "Large", "--config", "fast=true", "!state").stdout)
        assert state["set"] == {"the-model": "large", "fast": True}
    else:
        assert acpcli("--model", "large", "!state").code == 2


@req("AC-3")
def test_08_mention_parsing(acpcli):
    """`@path`, `@"with spaces"`, `@~/x` and `@https://…` become resource links with MIME types, without a download."""
    prompt = 'See @lib/main.py, @"my file.txt" and @~/notes.md at @https://example.com/a/page.html. Mail me@x.org'
    root, home = acpcli.workspace, acpcli.workspace.parent / "home"
    (root / "lib").mkdir()
    for path in (root / "lib" / "main.py", root / "my file.txt", home / "notes.md"):
        path.write_text("")
    blocks = json.loads(acpcli("-o", "simple", f"!blocks {prompt}").stdout)
    assert blocks[0] == {"type": "text", "text": f"!blocks {prompt}"}
    assert [(block["uri"], block["name"], block.get("mimeType")) for block in blocks[1:]] == [
        (f"file://{root}/lib/main.py", "main.py", "text/x-python"),
        (f"file://{root}/my%20file.txt", "my file.txt", "text/plain"),
        (f"file://{home}/notes.md", "notes.md", "text/markdown"),
        ("https://example.com/a/page.html", "page.html", "text/html"),
    ]
    assert {block["type"] for block in blocks[1:]} == {"resource_link"}


@req("AC-1", "AC-2", "CL-9")
@pytest.mark.parametrize(("order", "shown"), [("!hang", "hanging"), ("!leave sleep 1000\n!hang", "hanging")])
def test_09_cancellation_handling(acpcli, order, shown):
    """An interrupt sends `session/cancel`, closes open permission requests, ends all processes and exits with 130."""
    with acpcli.started("-o", "jsonl", "--write", f"!child pid\n{order}") as process:
        lines = []
        while shown not in (line := process.stdout.readline()):
            assert line
            lines.append(line)
        child = int((acpcli.workspace / "pid").read_text())
        assert not has_ended(child)
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate(timeout=60)
    logged = frames(rest)
    assert (process.returncode, errors) == (130, "")
    assert "session/cancel" in [frame.get("method") for frame in logged]
    assert {"stopReason": "cancelled"} in [frame.get("result") for frame in logged]
    assert has_ended(child)


@req("AC-1", "AC-5")
def test_10_error_scenarios(acpcli):
    """Exit with 2 for bad settings, an unknown agent or no prompt, with 1 if the agent fails."""
    for message, text in [
        ("invalid settings file", '{"agent_servers": {"x": {"args": []}}}'),
        ("settings.json:1:1", "not json"),
    ]:
        acpcli.settings.write_text(text)
        done = acpcli("hello")
        assert (done.code, done.stdout, message in done.stderr) == (2, "", True), (text, done)

    acpcli.agents(
        {
            "echo": {},
            "dies": {"args": ["--exit", "3"]},
            "new": {"args": ["--version", "7"]},
            "locked": {"args": ["--auth", "word"]},
        }
    )
    for args, code, message in [
        (["-a", "nobody", "hello"], 2, "unknown ACP agent 'nobody'; available: echo, dies"),
        ([], 2, "no prompt; pass it as an argument"),
        (["--nonsense", "hello"], 2, "unrecognized arguments"),
        (["-a", "dies", "hello"], 1, "dies ended with exit code 3; last output: echo_agent: the moon"),
        (["-a", "new", "hello"], 1, "new uses protocol version 7"),
        (["-a", "locked", "hello"], 1, "--auth with word (Log in)"),
        (["!crash 9"], 1, "echo ended with exit code 9"),
        (["--timeout", "1", "!hang"], 124, "echo did not finish within 1 s"),
        (["--check", "!unknown"], 1, "check: the agent: session/update: update has sessionUpdate 'dance'"),
    ]:
        done = acpcli(*args)
        assert (done.code, message in done.stderr) == (code, True), (args, done)
        assert "Traceback" not in done.stderr
    assert acpcli("-a", "locked", "--auth", "word", "--check", "hello")[::2] == ("Echo: hello\n", 0)
    assert os.listdir(acpcli.workspace) == []
