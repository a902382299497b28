"""`ostler connect` and `--backend remote` as processes: pairing, TLS, Unix socket, resume, fork, every frontend."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from tests.cli.test_acp_agent import Agent
from tests.conftest import Ostler
from tests.frontends.server.server_client import Gate
from tests.frontends.terminal import Terminal
from tests.process_starter import Started
from tests.remote_team import files_with
from tests.serving import serving
from tests.streaming_run import running

from ostler.testing.model_server import calls, text

pytestmark = pytest.mark.req("SV-6")


@pytest.fixture
def terminal(client):
    """`terminal("connect", …)` starts the client in a pseudo-terminal."""
    opened = []

    def start(*args, **options):
        opened.append(Terminal(client, *args, **options))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def write(path, content="new\n"):
    return calls([("write", {"path": path, "content": content})])


def test_pairing_line_with_a_fingerprint_of_a_private_authority(ostler, client, models, certificates):
    tls = ("--tls-cert", certificates.path("server.pem"), "--tls-key", certificates.path("server.key"))
    with serving(ostler, models, *tls, replies=[text("Hello over TLS."), text("Again.")]) as server:
        assert f".sha256-{certificates.fingerprint()}" in server.line
        started = time.monotonic()
        first = client("connect", server.line, "--plain", stdin="hi\n")
        assert "Hello over TLS." in first.stdout, first.stderr
        assert time.monotonic() - started < 10
        assert "Again." in client("run", "--backend", "remote", "hi").stdout
        wrong = client("login", server.line.replace(certificates.fingerprint(), "0" * 64))
        assert wrong.code != 0 and "certificate" in wrong.stderr


def test_unix_socket_needs_no_login(ostler, client, models, tmp_path):
    path = str(tmp_path / "run" / "ostler.sock")
    with serving(ostler, models, bind="", unix=path, replies=[text("Through the socket."), text("Also here.")]):
        assert "Through the socket." in client("connect", "--unix", path, "--plain", stdin="hi\n").stdout
        assert "Also here." in client("run", "--backend", f"remote:unix:{path}", "hi").stdout
    refused = client("run", "--backend", f"remote:{path}", "hi")
    assert refused.code == 1 and "ostler serve --unix" in refused.stderr


def test_server_is_found_by_host_name_and_as_the_only_login(team, client):
    assert client("login", team.server.url, stdin=f"{team.token}\n").code == 0
    team.script(text("one"), text("two"), text("three"))
    for backend in ("remote", "remote:127.0.0.1", f"remote:127.0.0.1:{team.server.port}"):
        assert client("run", "--backend", backend, "hi").code == 0, backend
    assert client("connect", "--plain", stdin="").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "--backend", "remote", "x"), "no server is known"),
        (("run", "--backend", "remote:http://127.0.0.1:9", "x"), "no login for http://127.0.0.1:9"),
        (("connect", "http://127.0.0.1:9", "--plain"), "ostler login http://127.0.0.1:9"),
        (("connect", "http://127.0.0.1:9#nonsense"), "not a pairing code"),
        (("connect", "http://127.0.0.1:9#AAAA-AAAA-AAAA-AAAA"), "127.0.0.1:9"),
        (("connect", "http://example.org#AAAA-AAAA-AAAA-AAAA"), "unencrypted"),
        (("connect", "http://127.0.0.1:9", "--unix", "x"), "either a URL or a Unix socket"),
        (("run", "--backend", "remotely", "x"), "unknown backend"),
    ],
)
def test_what_cannot_work_is_explained(client, arguments, message):
    done = client(*arguments)
    assert done.code in (1, 2)
    assert message in done.stderr


def test_two_logins_must_be_told_apart(team, client, ostler, models):
    client("login", team.server.url, stdin=f"{team.token}\n")
    with serving(ostler, models) as other:
        assert client("login", other.line).code == 0
        done = client("run", "--backend", "remote", "hi")
        assert done.code == 2 and team.server.url in done.stderr and other.url in done.stderr
        done = client("run", "--backend", "remote:127.0.0.1", "hi")
        assert done.code == 2 and "name one of them" in done.stderr


def test_logout_revokes_the_token(team, client, ostler):
    token = team.ostler("serve", "token", "issue", "bob").stdout.strip()
    client("login", team.server.url, stdin=f"{token}\n")
    assert client("logout", team.server.url).stdout == "logged out: its token was revoked\n"
    assert client("run", "--backend", "remote", "hi").code == 2
    assert team.server.request("GET", "/api/agent/sessions", token)[0] == 401


def test_edits_are_approved_and_denied_in_the_chat_and_undone(team, client, terminal):
    seen = team.script(write("a.txt"), text("Wrote it."), write("b.txt"), text("As you wish."), text("Forgotten."))
    chat = terminal("connect", team.server.url, env=team.env())
    chat.wait_for("context empty")
    chat.ready()
    chat.type("write a\r")
    chat.wait_for("allow?")
    chat.type("y\r")
    chat.wait_for("Wrote it.")
    assert (client.workspace / "a.txt").read_text() == "new\n"
    chat.wait_for("on this machine: created a.txt")
    chat.ready()
    chat.type("write b\r")
    chat.wait_for("allow?")
    chat.type("n\r")
    chat.wait_for("As you wish.")
    chat.ready()
    assert not (client.workspace / "b.txt").exists()
    for prompt in ("write b", "write a"):
        chat.type("/undo\r")
        chat.prompted(prompt)  # to be edited and sent again
        chat.type("\x15")
        chat.ready()
    assert not (client.workspace / "a.txt").exists()
    chat.type("what did I ask?\r")
    chat.wait_for("Forgotten.")
    prompts = [m["content"] for m in team.model.requests[seen + 4].json["messages"] if m["role"] == "user"]
    assert prompts == ["what did I ask?"]


def test_session_is_resumed_after_the_client_was_killed(team, client):
    """The turn goes on without the client, and the next client shows all of it."""
    gate = Gate()
    (client.workspace / "a.txt").write_text("content\n")
    team.script(
        text("An earlier answer."),
        calls([("read", {"path": "a.txt"})]),
        text("The begin\nof it, and the end.", chunks=2).hold_after(2, gate.wait),
        text("Later."),
    )
    assert team.run(client, "an earlier question").code == 0
    with running(client, "-c", "-o", "simple", *team.flags(), "go on", env=team.env()) as screen:
        screen.wait_for("The begin")
        os.killpg(screen.process.pid, signal.SIGKILL)
        screen.process.wait()
    gate.open()
    shown = client("connect", team.server.url, "-c", "--plain", stdin="and then?\n", env=team.env()).stdout
    assert shown.index("an earlier question") < shown.index("An earlier answer.") < shown.index("of it, and the end.")
    assert shown.count("and the end.") == 1 and shown.count("An earlier answer.") == 1
    assert shown.index("of it, and the end.") < shown.index("Later.")
    assert files_with(client.home / ".ostler" / "projects", "earlier") == []


def test_export_of_a_chat_has_the_conversation(team, client):
    team.script(text("Paris."))
    chat = "What is the capital of France?\n/export out.md\n"
    done = client("connect", team.server.url, "--plain", stdin=chat, env=team.env())
    exported = (client.workspace / "out.md").read_text()
    assert "What is the capital of France?" in exported and "Paris." in exported, done
    assert "stored on the server" not in exported


def test_call_of_a_killed_client_does_not_run_again_in_another_session_of_its_folder(team, client):
    """The second session is another tool host. If it takes the tools, the model is told that the outcome is unknown."""
    wait = "echo once >> runs; while [ ! -e go ]; do sleep 0.02; done"
    seen = team.script(calls([("bash", {"command": wait})]), text("It is unknown."), text("Later."))
    with running(client, "--write", *team.flags(), "go", env=team.env()) as screen:
        while not (client.workspace / "runs").exists():
            assert screen.process.poll() is None
            time.sleep(0.01)
        os.killpg(screen.process.pid, signal.SIGKILL)
        screen.process.wait()
    (client.workspace / "go").touch()
    session = f"{team.flags()[1]}/api/agent/sessions/{team.sessions()[0]['sessionId']}"
    arguments = ("run", "--write", "--take-tools", "--backend", session, "and then?")
    done = client(*arguments, env=team.env(), timeout=60)
    assert done.code == 0 and "Later." in done.stdout, done
    (result,) = team.tool_results(team.model.requests[seen + 1]).values()
    assert "unknown" in result
    assert (client.workspace / "runs").read_text() == "once\n"
    assert set(os.listdir(client.workspace)) == {"runs", "go"}


def test_turn_continues_after_the_server_was_killed(client, ostler, models):
    (client.workspace / "a.txt").write_text("content\n")
    wait = "echo once >> runs; while [ ! -e go ]; do sleep 0.02; done"
    token = ostler("serve", "token", "issue", "ada").stdout.strip()
    with models.playing(calls([("bash", {"command": wait})]), text("All is well.")) as model:
        server = start_server(ostler, model, 0)
        port = int(server.stdout.readline().rpartition(":")[2])
        env = {"OSTLER_SERVER_TOKEN": token}
        with running(client, "--write", "--backend", f"remote:http://127.0.0.1:{port}", "go", env=env) as screen:
            while not (client.workspace / "runs").exists():
                time.sleep(0.01)
            server.kill()
            server.wait()
            again = start_server(ostler, model, port)
            again.stdout.readline()
            (client.workspace / "go").touch()
            screen.wait_for("All is well.")
            screen.read_all()
            assert screen.process.returncode == 0
        again.send_signal(signal.SIGTERM)
        assert again.wait(20) == 0
        for process in (server, again):
            process.stdout.close()
    assert (client.workspace / "runs").read_text() == "once\n"


def start_server(ostler, model, port):
    """Start a server and read the first line."""
    flags = ["--base-url", model.base_url, "--model", "scripted", "--bind", f"127.0.0.1:{port}", "--no-pairing"]
    process = Started(
        ["serve", *flags],
        cwd=ostler.workspace,
        env=ostler.environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        encoding="utf-8",
    )
    assert process.stdout.readline().startswith("serving")
    return process


def test_fork_continues_in_a_copy(team, client):
    seen = team.script(text("The first."), text("In the copy."), text("In the original."))
    assert team.run(client, "one").code == 0
    before = len(team.sessions())
    assert "In the copy." in team.run(client, "-c", "--fork", "two").stdout
    assert len(team.sessions()) == before + 1
    prompts = [m["content"] for m in team.model.requests[seen + 1].json["messages"] if m["role"] == "user"]
    assert prompts == ["one", "two"]
    sessions = client("sessions", "list").stdout.splitlines()
    assert "In the original." in team.run(client, "--resume", sessions[-1].split()[0], "three").stdout
    prompts = [m["content"] for m in team.model.requests[seen + 2].json["messages"] if m["role"] == "user"]
    assert prompts == ["one", "three"]


def test_rules_skills_and_environment_of_the_client_reach_the_model(team, client):
    (client.workspace / "AGENTS.md").write_text("Always answer in rhymes.\n")
    skill = client.workspace / ".ostler" / "skills" / "brew"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: brew\ndescription: How to brew tea.\n---\nBoil the water first.\n")
    seen = team.script(calls([("skill", {"name": "brew"})]), text("done"))
    assert team.run(client, "go").code == 0
    system = team.model.requests[seen].json["messages"][0]["content"]
    assert "Always answer in rhymes." in system and "How to brew tea." in system
    assert f"Workspace: {client.workspace}" in system and str(team.ostler.workspace) not in system
    assert "Boil the water first." in str(team.tool_results(team.model.requests[seen + 1]))


def test_manifest_has_the_tools_that_replace_a_shell(team, client):
    seen = team.script(text("done"))
    assert team.run(client, "go").code == 0
    names = {tool["function"]["name"] for tool in team.model.requests[seen].json["tools"]}
    assert names >= {"read", "write", "bash", "stat", "mkdir", "write_chunk", "git_status", "git_diff", "git_log"}
    assert names >= {"git_show", "git_blame", "todowrite"}


def test_todos_are_kept_by_the_server(team, client):
    todos = {"todos": [{"content": "wash up", "status": "pending"}]}
    seen = team.script(calls([("todowrite", todos)]), calls([("todoread", {})]), text("done"))
    assert "wash up" in team.run(client, "go").stdout
    assert "wash up" in str(team.tool_results(team.model.requests[seen + 2]))


def test_editor_works_with_a_server(team, client):
    team.script(write("made.txt"), text("Written for the editor."))
    with Started(
        ["acp", "agent", *team.flags()],
        cwd=client.workspace,
        env=client.environment(team.env()),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        editor = Agent(process)
        session = editor.open_session(client.workspace)
        answer = editor.prompt(session, "go")
        assert answer["result"]["stopReason"] == "end_turn"
        process.stdin.close()
        process.wait(20)
    assert "Written for the editor." in json.dumps(editor.frames)
    assert (client.workspace / "made.txt").read_text() == "new\n"


def test_program_works_with_a_server(team, client):
    team.script(text("Said to a program."))
    program = f"import ostler; print(ostler.run('hi', {str(client.workspace)!r}, backend={team.flags()[1]!r}).answer)"
    done = subprocess.run(
        [sys.executable, "-c", program], env=client.environment(team.env()), capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "Said to a program.\n", done.stderr


def test_model_of_the_server_is_chosen_by_name(team, client):
    seen = team.script(text("ok"))
    assert team.run(client, "--model", "large", "hi").code == 0
    assert team.model.requests[seen].json["model"] == "scripted"


@pytest.mark.req("TU-9", "TU-6")
def test_full_screen_client_attaches_to_a_session_of_the_server_while_another_client_runs_its_tools(
    team, client, tmp_path
):
    team.script(text("The first answer."), write("made.txt"), text("It is made."))
    env = {"TERM": "xterm-256color", **team.env()}
    first = Terminal(client, "tui", *team.flags(), env=env, rows=30, columns=100)
    (tmp_path / "other").mkdir()
    other, second = Ostler(tmp_path / "other"), None
    try:
        first.wait_for("ready")
        first.type("begin\r")
        first.wait_for("The first answer.")
        session = team.sessions()[0]
        url = f"{team.server.url}/api/agent/sessions/{session['sessionId']}"
        second = Terminal(other, "tui", "--backend", f"remote:{url}", env=env, rows=30, columns=100)
        second.wait_for("The first answer.")
        second.type("make it\r")
        first.wait_for("Tab: other diff view")  # keys are answers from now on
        assert "Allow once" not in second.text
        first.type("y")
        first.wait_for(lambda shown: "y: Allow once" in shown or "It is made." in shown)
        first.type("\r")
        second.wait_for("It is made.")
        first.wait_for("It is made.")
    finally:
        for term in (first, second):
            if term is not None:
                term.close()
    assert (client.workspace / "made.txt").exists()
    assert not (other.workspace / "made.txt").exists()


def test_session_is_resumed_by_its_id_on_another_machine(team, client, ostler):
    """The other machine has no record of the session; `ostler` has another home and folder than `client`."""
    team.script(text("first"))
    assert team.run(client, "remember the word plum").code == 0
    sessions = team.sessions()
    session_id = sessions[0]["sessionId"]
    before = team.script(text("second"), text("third"))
    assert team.run(ostler, "--resume", session_id, "which word?").code == 0
    connected = ostler("connect", team.server.url, "--resume", session_id, "--plain", env=team.env(), stdin="again\n")
    assert "third" in connected.stdout, connected.stderr
    assert "plum" in json.dumps(team.model.requests[before].json["messages"])
    assert files_with(ostler.home, "plum") == []
    assert len(team.sessions()) == len(sessions)
    missing = team.run(ostler, "--resume", "no-such-session", "x")
    assert missing.code == 1 and "no such session" in missing.stderr


@pytest.mark.req("SV-12")
def test_second_client_finds_the_session_watches_it_and_takes_its_tools(team, client, terminal, tmp_path):
    team.script(text("Begun."), text("Heard you."), write("made.txt"), text("It is made."))
    first = terminal("chat", "--plain", *team.flags(), env=team.env(), columns=200)
    first.wait_for(">")
    first.type("begin\r")
    first.wait_for("Begun.")
    first.type("/status\r")
    first.wait_for("this machine")
    url = f"{team.server.url}/api/agent/sessions/{team.sessions()[0]['sessionId']}"
    assert url in first.text
    (tmp_path / "other").mkdir()
    other = Ostler(tmp_path / "other")
    listed = other("sessions", "list", "--server", team.server.url, env=team.env()).stdout
    assert f"--backend remote:{url}" in listed and "begin" in listed
    sent = other("run", "--backend", f"remote:{url}", "hello", env=team.env())
    assert "Heard you." in sent.stdout and "runs the tools of this session" in sent.stdout
    first.wait_for("Heard you.")
    taken = other("run", "--take-tools", "--write", "--backend", f"remote:{url}", "make it", env=team.env())
    assert "It is made." in taken.stdout, taken.stderr
    assert (other.workspace / "made.txt").exists() and not (client.workspace / "made.txt").exists()
    first.wait_for("/take-tools runs them on this machine again")
    assert files_with(other.home, "begin") == files_with(client.home, "make it") == []
