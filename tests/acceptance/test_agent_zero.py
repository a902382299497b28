"""Specification 002, the Agent Zero CLI: sections 5 to 11."""

import json

import pytest

from ostler.testing.model_server import calls, text

F4 = "\x1bOS"

req, missing = pytest.mark.req, pytest.mark.missing


def verdict(ostler, *call):
    """Return the policy's decision on a call: allow, ask or deny."""
    return ostler("permissions", "explain", *call).stdout.split(":")[0].split()[0]


def secure(ostler, **security):
    (ostler.home / ".ostler").mkdir(exist_ok=True)
    (ostler.home / ".ostler" / "config.json").write_text(json.dumps({"security": security}))


BACKEND = "the Agent Zero backend"
CONTEXT = "the context builder"
PROFILES = "the security profiles"
SCREEN = "the full-screen client"


# 5 External API


@req("AZ-1")
@missing(BACKEND)
def test_5_1_request_body():
    """The prompt is posted to `connection.api_url` as `message` with `lifetime_hours`, and no `context_id` at first."""
    raise NotImplementedError


@req("AZ-1")
@missing(BACKEND)
def test_5_2_sse_response():
    """A `text/event-stream` answer is shown event by event as it arrives."""
    raise NotImplementedError


@req("AZ-1")
@missing(BACKEND)
def test_5_2_jsonl_response():
    """A JSONL or NDJSON answer is shown line by line, also when a line is cut by the transport."""
    raise NotImplementedError


@req("AZ-1")
@missing(BACKEND)
def test_5_2_plain_json_or_string_response():
    """A single JSON object, a JSON string and bare text each become the final answer."""
    raise NotImplementedError


@req("AZ-2")
@missing(BACKEND)
def test_5_3_status_event():
    """`status` is shown as a status line, not as part of the answer."""
    raise NotImplementedError


@req("AZ-2")
@missing(BACKEND)
def test_5_3_thinking_and_thought_events():
    """`thinking` and `thought` are both shown as reasoning, separate from the answer."""
    raise NotImplementedError


@req("AZ-2", "AZ-3")
@missing(BACKEND)
def test_5_3_tool_request_event():
    """`tool_request` becomes a local call with the same permission check as any other."""
    raise NotImplementedError


@req("AZ-2")
@missing(BACKEND)
def test_5_3_tool_output_event():
    """`tool_output` is shown as the result of the call it belongs to."""
    raise NotImplementedError


@req("AZ-2")
@missing(BACKEND)
def test_5_3_final_response_event():
    """`final_response` is the answer and ends the turn."""
    raise NotImplementedError


@req("AZ-2")
@missing(BACKEND)
def test_5_4_context_id_under_each_spelling():
    """`context_id`, `contextId` and `conversation_id` in an answer are sent as `context_id` in the next request."""
    raise NotImplementedError


@req("AZ-2", "AZ-3")
@missing(BACKEND)
def test_5_4_context_id_is_sent_with_tool_results():
    """A tool result is posted under the stored context id."""
    raise NotImplementedError


# 6 Tool calls


@req("AZ-3", "TL-4")
@missing(BACKEND)
def test_6_1_every_tool_name_runs():
    """Each of the seven names in the request schema runs its tool, with its payload as arguments."""
    raise NotImplementedError


@req("AZ-3", "PM-5")
@missing(BACKEND)
def test_6_1_command_and_reason_are_shown():
    """The approval request shows the `command` and `reason` of the request; the payload is run."""
    raise NotImplementedError


@req("AZ-3")
@missing(BACKEND)
def test_6_2_result_fields():
    """A result is sent with `tool_name`, `ok`, `output` and `details`, and with `tool_call_id` if there was one."""
    raise NotImplementedError


@req("AZ-3", "PM-7")
@missing(BACKEND)
def test_6_2_denial_is_sent():
    """For a request that the user denies, `ok` false and the reason are sent, and nothing is run."""
    raise NotImplementedError


# 7 Context builder


@req("AZ-4")
@missing(CONTEXT)
def test_7_1_mode_always():
    """`always`: each of two equal prompts carries the context."""
    raise NotImplementedError


@req("AZ-4")
@missing(CONTEXT)
def test_7_1_mode_on_change():
    """`on_change`: an unchanged workspace sends no context again, a changed one does."""
    raise NotImplementedError


@req("AZ-4")
@missing(CONTEXT)
def test_7_1_mode_once():
    """`once`: the context is sent once per context id, even if the workspace changes."""
    raise NotImplementedError


@req("AZ-4")
@missing(CONTEXT)
def test_7_1_mode_manual():
    """`manual`: no context is sent automatically."""
    raise NotImplementedError


@req("AZ-4")
@missing(CONTEXT)
def test_7_2_file_tree_is_bounded():
    """The tree is limited to the configured depth and count, notes that, and is the same on every run."""
    raise NotImplementedError


@req("AZ-4")
@missing(CONTEXT)
def test_7_2_optional_previews():
    """File previews are included if they are enabled."""
    raise NotImplementedError


@req("AZ-4")
@missing(CONTEXT)
def test_7_2_optional_git_status():
    """Git status is included if it is enabled; a folder without git is not an error."""
    raise NotImplementedError


@req("AZ-4")
@missing(CONTEXT)
def test_7_2_optional_system_metadata():
    """System metadata is included if it is enabled."""
    raise NotImplementedError


@req("AZ-5")
@missing(CONTEXT)
def test_7_3_redact_keys():
    """The values of `context.redact_keys` in previewed YAML and JSON are masked."""
    raise NotImplementedError


@req("AZ-5")
@missing(CONTEXT)
def test_7_3_redact_patterns():
    """Matches of `context.redact_patterns` are replaced by `***REDACTED***`."""
    raise NotImplementedError


@req("AZ-5")
@missing(CONTEXT)
def test_7_3_sensitive_files_are_excluded():
    """`.env`, `config.yaml` and similar files are not previewed unless they are configured."""
    raise NotImplementedError


# 8 Security model


@req("PM-3")
def test_8_paranoid_asks_for_every_tool(ostler):
    """`paranoid`: even a read needs approval."""
    (ostler.workspace / "a").write_text("x")
    secure(ostler, profile="paranoid")
    for call in (("read", '{"path": "a"}'), ("list", "{}"), ("grep", '{"pattern": "x"}'), ("ls",)):
        assert verdict(ostler, *call) == "ask"


@req("PM-3", "SH-7")
def test_8_balanced_allows_reads_and_whitelisted_shell(ostler):
    """`balanced`: reads and whitelisted commands are allowed, a write needs approval."""
    (ostler.workspace / "a").write_text("x")
    secure(ostler, whitelist=["git status", "make"])
    assert verdict(ostler, "read", '{"path": "a"}') == "allow"
    assert verdict(ostler, "git status --short") == "allow"
    assert verdict(ostler, "make test") == "allow"
    assert verdict(ostler, "git push") == "ask"
    assert verdict(ostler, "write", '{"path": "b", "content": ""}') == "ask"


@req("PM-3", "SH-3", "SH-6", "SH-7")
def test_8_god_mode_allows_all_except_dangerous_commands(ostler):
    """`god_mode`: ordinary writes and commands are allowed; dangerous ones need approval, the blacklist denies."""
    secure(ostler, profile="god_mode", blacklist_patterns=["forbidden"])
    assert verdict(ostler, "write", '{"path": "b", "content": ""}') == "allow"
    assert verdict(ostler, "npm install left-pad") == "allow"
    assert verdict(ostler, "rm -r build") == "ask"
    assert verdict(ostler, "rm -rf /") == "deny"
    assert verdict(ostler, "echo forbidden") == "deny"


@req("SH-7")
@missing(PROFILES)
def test_8_shell_is_off_by_default():
    """Without `allow_shell` a shell request is denied; enabling it writes a warning to the log."""
    raise NotImplementedError


@req("SH-7")
def test_8_blacklist_is_always_enforced(ostler):
    """A command that matches `blacklist_patterns` is denied in every profile, even if the user types it."""
    secure(ostler, profile="god_mode", blacklist_patterns=["curl .*evil"], whitelist=["curl"])
    for command in ("curl http://evil.example", "true && curl -s http://evil.example", "sh -c 'curl evil'"):
        assert verdict(ostler, "--allow", "bash", command) == "deny"


@req("SH-7")
def test_8_whitelist_matches_whole_commands(ostler):
    """A whitelisted prefix allows that command, not one that starts with the same letters or adds others."""
    secure(ostler, whitelist=["ls", "git status"])
    (ostler.workspace / "f").write_text("x")
    assert verdict(ostler, "ls -la") == "allow"
    for command in ("ls; rm -rf x", "ls && make", "lsof", "git statusx", "ls > f", "ls $(make)"):
        assert verdict(ostler, command) == "ask", command


# 9 UI requirements


def at(server):
    return ["--base-url", server.base_url, "--model", "scripted"]


def opened(terminal, server, **options):
    """The full-screen client, when its input is ready."""
    term = terminal("tui", *at(server), columns=120, rows=30, **options)
    term.wait_for("shows all keys")
    term.wait_for("ready")
    return term


@req("TU-1")
def test_9_live_feed_and_status(terminal, models):
    """The screen shows events as they happen and the status of the turn."""
    with models.playing(text("It is done.")) as server:
        term = opened(terminal, server)
        assert all(label in term.text for label in ("STATE", "MODEL", "CONTEXT", "COST", "PROFILE"))
        term.type(F4)
        term.wait_for("EVENTS")
        term.type("go\r")
        term.wait_for("● It is done.")
        term.wait_for("prompt: go")
        term.wait_for("turn done")


@req("TU-2")
def test_9_approval_dialog_with_preview(terminal, ostler, models):
    """A write that needs approval opens a dialog with its diff; a key answers it."""
    write = calls([("write", {"path": "notes.txt", "content": "first\nsecond\n"})])
    with models.playing(write, text("Written.")) as server:
        term = opened(terminal, server)
        term.type("write\r")
        term.wait_for("Allow once")
        dialog = term.wait_for("Tab: diff")
        assert "notes.txt: would be created, +2 -0" in dialog
        assert "+second" in dialog
        term.type("y\r")
        term.wait_for("● Written.")
    assert (ostler.workspace / "notes.txt").read_text() == "first\nsecond\n"


@req("TU-3")
@missing(SCREEN)
def test_9_switch_project_profile_and_theme():
    """Project, security profile and theme can be changed at run time and apply to the next turn."""
    raise NotImplementedError


@req("TU-4")
def test_9_single_and_multi_line_input(terminal, models):
    """One line is sent with Enter; a prompt of several lines arrives with its line breaks."""
    with models.playing(text("One."), text("Two.")) as server:
        term = opened(terminal, server)
        term.type("single\r")
        term.wait_for("● One.")
        term.wait_for("ready")
        term.type("first\nsecond\r")
        term.wait_for("● Two.")
        prompts = [message for message in server.requests[-1].json["messages"] if message["role"] == "user"]
    assert "first\nsecond" in json.dumps(prompts[-1]).replace("\\n", "\n")


# 10 Error handling


@req("AZ-6")
@missing(BACKEND)
def test_10_network_error_is_a_final_response():
    """A refused connection, an HTTP error and a cut stream each end the turn with a summary, without a traceback."""
    raise NotImplementedError


@req("AZ-6")
@missing(BACKEND)
def test_10_tool_failure_goes_back_with_stderr():
    """For a command that fails, `ok` false and its stderr in `output` are sent."""
    raise NotImplementedError


# 11 Performance constraints


@req("AZ-4")
@missing(CONTEXT)
def test_11_context_within_max_bytes():
    """However large the workspace, the context has at most `context.max_bytes` bytes and is valid UTF-8."""
    raise NotImplementedError


@req("AZ-4")
@missing(CONTEXT)
def test_11_previews_within_max_preview_bytes():
    """Previews of large files are truncated to `context.max_preview_bytes`, with a note."""
    raise NotImplementedError
