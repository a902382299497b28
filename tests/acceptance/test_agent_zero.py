"""Seed 002, the Agent Zero CLI: sections 5 to 11 of its specification."""

import json

import pytest

req, missing = pytest.mark.req, pytest.mark.missing


def verdict(ostler, *words):
    """What the policy says to a call: allow, ask or deny."""
    return ostler("permissions", "explain", *words).stdout.split(":")[0].split(",")[0]


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
    """`status` appears as a status line and is no part of the answer."""
    raise NotImplementedError


@req("AZ-2")
@missing(BACKEND)
def test_5_3_thinking_and_thought_events():
    """`thinking` and `thought` both appear as reasoning, apart from the answer."""
    raise NotImplementedError


@req("AZ-2", "AZ-3")
@missing(BACKEND)
def test_5_3_tool_request_event():
    """`tool_request` becomes a local call that passes the policy like any other."""
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
    """`context_id`, `contextId` and `conversation_id` in an answer come back as `context_id` in the next request."""
    raise NotImplementedError


@req("AZ-2", "AZ-3")
@missing(BACKEND)
def test_5_4_context_id_goes_with_tool_results():
    """A tool result is posted under the stored context id."""
    raise NotImplementedError


# 6 Tool calls


@req("AZ-3", "TL-4")
@missing(BACKEND)
def test_6_1_every_tool_name_runs():
    """Each of the seven names in the request schema runs the tool it stands for, with its payload as arguments."""
    raise NotImplementedError


@req("AZ-3", "PM-5")
@missing(BACKEND)
def test_6_1_command_and_reason_are_shown():
    """The question to the person shows the request's `command` and `reason`; what runs is the payload."""
    raise NotImplementedError


@req("AZ-3")
@missing(BACKEND)
def test_6_2_result_fields():
    """A result goes back with `tool_name`, `ok`, `output` and `details`, and with `tool_call_id` where one came."""
    raise NotImplementedError


@req("AZ-3", "PM-7")
@missing(BACKEND)
def test_6_2_rejection_goes_back():
    """A request the person turns down goes back with `ok` false and the reason, and nothing ran."""
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
    """`once`: the context goes out once per context id, changes or not."""
    raise NotImplementedError


@req("AZ-4")
@missing(CONTEXT)
def test_7_1_mode_manual():
    """`manual`: no context goes out by itself."""
    raise NotImplementedError


@req("AZ-4")
@missing(CONTEXT)
def test_7_2_file_tree_is_bounded():
    """The tree stops at the configured depth and count, says so, and is the same on every run."""
    raise NotImplementedError


@req("AZ-4")
@missing(CONTEXT)
def test_7_2_optional_previews():
    """File previews are there when switched on and absent when not."""
    raise NotImplementedError


@req("AZ-4")
@missing(CONTEXT)
def test_7_2_optional_git_status():
    """Git status is there when switched on, and its absence in a plain folder is no error."""
    raise NotImplementedError


@req("AZ-4")
@missing(CONTEXT)
def test_7_2_optional_system_metadata():
    """System metadata is there when switched on and absent when not."""
    raise NotImplementedError


@req("AZ-5")
@missing(CONTEXT)
def test_7_3_redact_keys():
    """The values of `context.redact_keys` in previewed YAML and JSON are masked."""
    raise NotImplementedError


@req("AZ-5")
@missing(CONTEXT)
def test_7_3_redact_patterns():
    """What matches `context.redact_patterns` is replaced by the marker `***REDACTED***`."""
    raise NotImplementedError


@req("AZ-5")
@missing(CONTEXT)
def test_7_3_sensitive_files_are_left_out():
    """`.env`, `config.yaml` and their like are never previewed unless asked for."""
    raise NotImplementedError


# 8 Security model


@req("PM-3")
def test_8_paranoid_asks_for_every_tool(ostler):
    """`paranoid`: even a read waits for the person."""
    (ostler.workspace / "a").write_text("x")
    secure(ostler, profile="paranoid")
    for call in (("read", '{"path": "a"}'), ("list", "{}"), ("grep", '{"pattern": "x"}'), ("ls",)):
        assert verdict(ostler, *call) == "ask"


@req("PM-3", "SH-7")
def test_8_balanced_passes_reads_and_whitelisted_shell(ostler):
    """`balanced`: reads and whitelisted shell prefixes pass, a write waits for the person."""
    (ostler.workspace / "a").write_text("x")
    secure(ostler, whitelist=["git status", "make"])
    assert verdict(ostler, "read", '{"path": "a"}') == "allow"
    assert verdict(ostler, "git status --short") == "allow"
    assert verdict(ostler, "make test") == "allow"
    assert verdict(ostler, "git push") == "ask"
    assert verdict(ostler, "write", '{"path": "b", "content": ""}') == "ask"


@req("PM-3", "SH-3", "SH-6", "SH-7")
def test_8_god_mode_passes_all_but_the_guards(ostler):
    """`god_mode`: ordinary writes and commands pass; the dangerous class still asks and the blacklist still denies."""
    secure(ostler, profile="god_mode", blacklist_patterns=["forbidden"])
    assert verdict(ostler, "write", '{"path": "b", "content": ""}') == "allow"
    assert verdict(ostler, "npm install left-pad") == "allow"
    assert verdict(ostler, "rm -r build") == "ask"
    assert verdict(ostler, "rm -rf /") == "deny"
    assert verdict(ostler, "echo forbidden") == "deny"


@req("SH-7")
@missing(PROFILES)
def test_8_shell_is_off_by_default():
    """Without `allow_shell` a shell request is refused; switching it on writes a warning to the log."""
    raise NotImplementedError


@req("SH-7")
def test_8_blacklist_is_always_enforced(ostler):
    """A command that `blacklist_patterns` names is refused in every profile, also when a person types it."""
    secure(ostler, profile="god_mode", blacklist_patterns=["curl .*evil"], whitelist=["curl"])
    for command in ("curl http://evil.example", "true && curl -s http://evil.example", "sh -c 'curl evil'"):
        assert verdict(ostler, "--allow", "bash", command) == "deny"


@req("SH-7")
def test_8_whitelist_matches_whole_commands(ostler):
    """A whitelisted prefix approves that command, and not one that only begins with the same letters or chains more."""
    secure(ostler, whitelist=["ls", "git status"])
    (ostler.workspace / "f").write_text("x")
    assert verdict(ostler, "ls -la") == "allow"
    for command in ("ls; rm -rf x", "ls && make", "lsof", "git statusx", "ls > f", "ls $(make)"):
        assert verdict(ostler, command) == "ask", command


# 9 UI requirements


@req("TU-1")
@missing(SCREEN)
def test_9_live_feed_and_status():
    """The screen shows events as they happen and a status that follows the turn."""
    raise NotImplementedError


@req("TU-2")
@missing(SCREEN)
def test_9_approval_dialog_with_preview():
    """A write that must be asked for opens a dialog with its diff, and the key pressed decides."""
    raise NotImplementedError


@req("TU-3")
@missing(SCREEN)
def test_9_switch_project_profile_and_theme():
    """Project, security profile and theme change at run time, and the next turn goes by them."""
    raise NotImplementedError


@req("TU-4")
@missing(SCREEN)
def test_9_single_and_multi_line_input():
    """One line is sent with Enter; a prompt of several lines arrives with its line breaks."""
    raise NotImplementedError


# 10 Error handling


@req("AZ-6")
@missing(BACKEND)
def test_10_network_error_is_a_final_response():
    """A refused connection, an HTTP error and a cut stream each end the turn with a summary, without a traceback."""
    raise NotImplementedError


@req("AZ-6")
@missing(BACKEND)
def test_10_tool_failure_goes_back_with_stderr():
    """A command that fails goes back with `ok` false and its stderr in `output`."""
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
    """However large the files, their previews keep to `context.max_preview_bytes` and say that they were cut."""
    raise NotImplementedError
