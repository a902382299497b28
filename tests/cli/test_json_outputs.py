"""Field names of the JSON output of the command line, which scripts and editors rely on."""

import json
import shutil
import subprocess
import sys

import pytest
from tests.conftest import at
from tests.stored_examples import STORED, check, field_names, schema_lines

from ostler.settings.home import project_id
from ostler.settings.jsonc_parser import JsoncDocument
from ostler.testing.model_server import calls, status, text

pytestmark = pytest.mark.req("CL-8")
OLD = STORED.parent / "sessions" / "v0"
SETTINGS = STORED.parent / "settings"
FREE = ("arguments", "rules", "content", "schema", "data")
IDENTITY = ("-c", "user.name=Ann", "-c", "user.email=ann@x.example", "-c", "commit.gpgsign=false")


def check_fields(name, value, free=()):
    check(f"outputs/{name}", field_names(value, free))


@pytest.fixture
def sessions(ostler):
    """Return a function that runs `ostler sessions …` and parses its JSON, with a session that has every field."""
    folder = ostler.home / ".ostler" / "projects" / project_id(ostler.workspace) / "sessions"
    shutil.copytree(STORED / "session", folder / "s1")
    for old in OLD.iterdir():
        shutil.copytree(old, folder / old.name)

    def run(*arguments):
        done = ostler("sessions", *arguments)
        assert (done.code, done.stderr) == (0, "")
        return json.loads(done.stdout)

    return run


@pytest.mark.req("SE-3")
def test_sessions_list(sessions):
    check_fields("sessions_list", sessions("list", "--json"))


@pytest.mark.req("SE-3")
def test_sessions_show(sessions):
    shown = sessions("show", "s1", "--json")
    check_fields("sessions_show", shown, FREE)
    check("outputs/sessions_show_session", shown["session"])
    roles = {message["role"] for message in sessions("show", "267f9d", "--json")["messages"]}
    assert roles == {"user", "assistant", "tool", "system"}


@pytest.mark.req("SE-3")
def test_sessions_search(sessions):
    check_fields("sessions_search", sessions("search", "Greek", "--json"))


@pytest.mark.req("SE-3")
def test_sessions_stats(sessions):
    check_fields("sessions_stats", sessions("stats", "--json"))


@pytest.mark.req("SE-3")
def test_sessions_export(sessions):
    exported = sessions("export", "s1", "-f", "json", "--no-redact")
    assert (exported["format"], exported["version"]) == ("ostler session", 1)
    check_fields(
        "sessions_export", {**exported, "records": [{**record, "event": {}} for record in exported["records"]]}
    )
    stored = [json.loads(line) for line in (STORED / "session" / "journal.jsonl").read_text("utf-8").splitlines()]
    assert [record["event"] for record in exported["records"]] == [record["event"] for record in stored]


@pytest.mark.req("PM-4")
def test_permissions_classify(ostler):
    commands = {"ls": "ordinary", "rm a": "confirm", "rm -rf /": "deny"}
    lines = "".join(json.dumps({"cmd": command}) + "\n" for command in commands)
    output = [json.loads(line) for line in ostler("permissions", "classify", stdin=lines).stdout.splitlines()]
    check_fields("permissions_classify", output)
    check("outputs/permissions_classify_verdicts", {item["cmd"]: item["verdict"] for item in output})


@pytest.mark.req("TL-3")
def test_tool_schema(ostler):
    """Also pins argument names: they are in the prompts of resumed sessions."""
    names = sorted(line.split()[0] for line in ostler("tool", "list").stdout.splitlines())
    output = [json.loads(ostler("tool", "schema", name).stdout) for name in names]
    check_fields("tool_schema", output, FREE)
    check(
        "outputs/tools",
        {item["name"]: {"kind": item["kind"], "arguments": schema_lines(item["schema"])} for item in output},
    )


TOOLS = [
    ("read", {"path": "a.txt"}),
    ("list", {}),
    ("list", {"depth": 2}),
    ("stat", {"path": "a.txt"}),
    ("grep", {"pattern": "alpha", "context": 1}),
    ("grep", {"pattern": "alpha", "mode": "files"}),
    ("grep", {"pattern": "alpha", "mode": "count"}),
    ("glob", {"pattern": "**/*.txt"}),
    ("write", {"path": "new.txt", "content": "new\n"}),
    ("edit", {"path": "a.txt", "old": "alpha", "new": "omega"}),
    ("patch", {"patch": "*** Begin Patch\n*** Update File: a.txt\n@@\n-omega\n+alpha\n*** End Patch\n"}),
    ("mkdir", {"path": "made"}),
    ("write_chunk", {"path": "made/long.txt", "content": "one\n"}),
    ("write_chunk", {"path": "made/long.txt", "content": "two\n", "final": True}),
    ("todowrite", {"todos": [{"id": "1", "content": "Look", "status": "pending", "priority": "high"}]}),
    ("todoread", {}),
    ("bash", {"command": "echo hi"}),
    ("bash", {"command": "exit 3"}),
    ("bash", {"command": "sleep 60", "background": True}),
    ("bash", {"action": "list"}),
    ("bash", {"action": "read", "job": "1"}),
    ("bash", {"action": "stop", "job": "1"}),
    ("git_status", {}),
    ("git_diff", {}),
    ("git_log", {"with_files": True}),
    ("git_show", {"ref": "HEAD"}),
    ("git_blame", {"path": "b.txt"}),
    ("skill", {}),
    ("skill", {"name": "brew"}),
    ("read", {"path": "missing.txt"}),
    ("read", {"path": "made"}),
    ("edit", {"path": "a.txt", "old": "nowhere", "new": "x"}),
    ("edit", {}),
    ("grep", {"pattern": "("}),
    ("write", {"path": "../out.txt", "content": "x"}),
    ("no_such_tool_at_all", {}),
]


@pytest.mark.req("TL-4")
def test_tool_calls(ostler):
    for name in ("a.txt", "b.txt"):
        (ostler.workspace / name).write_text("alpha\nbeta\n")
    skill = ostler.workspace / ".ostler" / "skills" / "brew" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: brew\ndescription: Make tea.\n---\nBoil water.\n")
    for command in (["init", "-q"], ["add", "."], [*IDENTITY, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *command], cwd=ostler.workspace, env=ostler.environment(), check=True)
    lines = [json.dumps({"tool": tool, "arguments": arguments}) for tool, arguments in TOOLS]
    done = ostler("tool", "calls", "--yolo", "--allow", "bash", stdin="\n".join([*lines, '"no call"']) + "\n")
    output = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(output) == len(TOOLS) + 1, done.stderr
    found = {}
    for (tool, arguments), item in zip([*TOOLS, ("", {})], output, strict=True):
        code = (item["fault"] or {}).get("code")
        found[f"{tool} {json.dumps(arguments)}"] = [item["status"], code, *field_names(item)]
    check("outputs/tool_calls", found)


@pytest.mark.req("TL-4")
def test_tool_call_with_an_image(ostler):
    (ostler.workspace / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 20)
    check_fields("tool_call_image", json.loads(ostler("tool", "call", "read", '{"path": "a.png"}').stdout))


@pytest.mark.req("AC-6")
def test_acp_comply(ostler):
    agent = (sys.executable, "-P", "-m", "ostler.testing.echo_agent")
    done = ostler("acp", "comply", "-o", "json", "--only", "INIT-1", "--only", "conduct", "--", *agent)
    output = json.loads(done.stdout)
    assert {item["state"] for item in output["findings"]} == {"passed"}
    check_fields("acp_comply", output, ("agent",))
    check("outputs/acp_comply_areas", sorted({item["area"] for item in output["findings"]}))


@pytest.mark.req("AC-1")
def test_acp_run(ostler):
    """The client's own events between the frames of the protocol."""
    settings = ostler.home / "settings.json"
    store = ostler.home / "store"
    store.mkdir()
    entry = {"command": sys.executable, "args": ["-P", "-m", "ostler.testing.echo_agent", "--store", str(store)]}
    settings.write_text(json.dumps({"agent_servers": {"echo": entry}}))
    lists = ("--list-caps", "--list-modes", "--list-commands", "--list-sessions")
    frames = []
    for arguments in (("--check", "!ask edit\n!write a.txt x"), lists):
        done = ostler("acp", "run", "--settings", settings, "-o", "jsonl", *arguments)
        frames += [json.loads(line) for line in done.stdout.splitlines()]
    remarks = {}
    for frame in frames:
        if frame.get("method", "").startswith("client/"):
            names = field_names(frame, ("agentCapabilities",))
            remarks[frame["method"]] = sorted({*remarks.get(frame["method"], ()), *names})
    check("outputs/acp_run", dict(sorted(remarks.items())))


def test_run_json(ostler, models):
    """The summary of a run with tools, a denial and structured output."""
    (ostler.workspace / "shape.json").write_text('{"type": "object", "properties": {"n": {"type": "integer"}}}')
    wanted = [("list", {}), ("write", {"path": "a.txt", "content": "x"})]
    with models.playing(calls(wanted), text('{"n": 1}')) as server:
        done = ostler("run", "-o", "json", "--output-schema", "shape.json", *at(server), "look")
    output = json.loads(done.stdout)
    check_fields("run_json", output)
    assert (output["type"], output["reason"], output["exit"], output["output"]) == ("summary", "done", 4, {"n": 1})
    with models.playing(status(401)) as server:
        done = ostler("run", "-o", "json", *at(server), "look")
    output = json.loads(done.stdout)
    check_fields("run_json_failed", output)
    assert (output["reason"], output["exit"], output["error"]["code"]) == ("failed", 1, "key_refused")


def test_run_jsonl(ostler, models):
    task = calls([("task", {"prompt": "List the files.", "agent": "explore"})])
    with models.playing(task, text("None."), text("Done.")) as server:
        done = ostler("run", "-o", "jsonl", *at(server), "look")
    *records, summary = [json.loads(line) for line in done.stdout.splitlines()]
    assert {tuple(record) for record in records} == {("seq", "time", "event")}
    assert summary["type"] == "summary"
    stored = [json.loads(line) for line in (STORED / "events.jsonl").read_text("utf-8").splitlines()]
    known = {event["type"]: field_names(event, FREE) for event in stored}
    for event in (record["event"] for record in records):
        assert [name for name in field_names(event, (*FREE, "tools")) if name not in known[event["type"]]] == []
    finished = [record["event"]["result"] for record in records if record["event"]["type"] == "tool_finished"]
    check_fields("run_jsonl_task", [result["data"] for result in finished])


def test_run_print_schema(ostler):
    check("run_schema", schema_lines(json.loads(ostler("run", "--print-schema").stdout)))


@pytest.mark.req("DX-4")
def test_config_schema(ostler):
    check("config_schema", schema_lines(json.loads(ostler("config", "schema").stdout)))


@pytest.mark.req("DX-4")
def test_config_show(ostler):
    folder = ostler.home / ".ostler"
    folder.mkdir()
    shutil.copy(SETTINGS / "full.jsonc", folder / "config.jsonc")
    assert ostler("config", "check").code == 0
    shown, output = (
        JsoncDocument("shown", ostler("config", "show", *flags).stdout.replace(str(ostler.home), "~")).value
        for flags in ((), ("--origin",))
    )
    check("outputs/config_show", shown)
    assert output == shown


@pytest.mark.req("EN-15")
def test_hook_input(ostler, models):
    log = ostler.home / "log"
    moments = ("before_tool", "after_tool", "prompt_submitted", "turn_end")
    hook = [{"command": ["sh", "-c", f"cat >> {log}; echo >> {log}"]}]
    (ostler.home / ".ostler").mkdir()
    (ostler.home / ".ostler" / "config.json").write_text(json.dumps({"hooks": dict.fromkeys(moments, hook)}))
    with models.playing(calls([("list", {})]), text("Done.")) as server:
        ostler("run", *at(server), "look")
    output = [json.loads(line) for line in log.read_text().splitlines()]
    check("outputs/hooks", {item["moment"]: field_names(item, ("arguments",)) for item in output})


@pytest.mark.req("MD-6")
def test_xnl(ostler):
    tree = ostler("xnl", "parse", stdin='<box {n=1 s="x"} [ 1 true <in> ] >\n<t #>text</#>\n')
    check("outputs/xnl_parse", json.loads(tree.stdout))
    good = '<tool_call id="c1" lang="javascript" #>SysBuiltIn.read({ path: "a.txt" })</#>'
    wrong = '<tool_call id="c2" #>x()</#>'
    done = ostler("xnl", "calls", stdin=f"!unquote_start\n{good}\n{wrong}\n!unquote_end")
    output = json.loads(done.stdout)
    check("outputs/xnl_calls", [[field_names(item, ("arguments",)), item.get("error")] for item in output])
