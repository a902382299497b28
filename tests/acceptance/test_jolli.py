"""Specification 001, the JolliAgent CLI: a server with the model, a client that runs the tools; protocol and policy."""

import pytest
from tests.serving import hello, serving

req, missing = pytest.mark.req, pytest.mark.missing
SERVER = "`ostler serve`"
CLIENT = "`ostler connect`"
BOTH = "`ostler serve` with `ostler connect`"


# Requirements


@req("SV-1", "SE-1")
@missing(BOTH)
def test_server_owns_the_session():
    """History and tool results are found in the server's store; the client keeps no conversation of its own."""
    raise NotImplementedError


@req("SV-1")
@missing(BOTH)
def test_tools_run_on_the_client():
    """With server and client in different folders, file and git tools see and change only the client's."""
    raise NotImplementedError


@req("SV-2", "CL-6")
@missing(BOTH)
def test_answer_streams_to_the_client():
    """The client prints the first delta while the model is still held back from sending the second."""
    raise NotImplementedError


@req("SV-5", "MD-3")
@missing(BOTH)
def test_model_keys_stay_on_the_server():
    """A client with no model key works, and no frame or file on its side ever contains the server's key."""
    raise NotImplementedError


# Transport


@req("SV-2")
@missing(SERVER)
def test_one_websocket_carries_everything():
    """User messages, deltas, tool calls, results, heartbeats and errors share one connection."""
    raise NotImplementedError


@req("SV-3")
@missing("the SSE fallback")
def test_sse_brings_deltas_and_tool_calls():
    """Without a WebSocket the same server messages arrive as server-sent events."""
    raise NotImplementedError


@req("SV-3", "SV-7")
@missing("the SSE fallback")
def test_post_returns_tool_results():
    """A tool result sent by POST reaches the waiting call; sent a second time it changes nothing."""
    raise NotImplementedError


# Client to server


@req("SV-2", "SV-4")
@missing(SERVER)
def test_hello_carries_version_manifest_and_root():
    """`hello` with `clientVersion`, `toolManifest` and `workspaceRoot` must be the first message."""
    raise NotImplementedError


@req("SV-2")
@missing(SERVER)
def test_user_message_starts_a_turn():
    """`user.message` with `sessionId` and `content` makes the server send that content to the model."""
    raise NotImplementedError


@req("SV-2")
@missing(SERVER)
def test_tool_result_continues_the_turn():
    """`tool.result` with `sessionId`, `toolCallId` and `output` puts the output into the next model request."""
    raise NotImplementedError


@req("SV-2", "CL-9")
@missing(SERVER)
def test_cancel_ends_the_turn():
    """`cancel` stops model and open tool calls, and the session takes the next message."""
    raise NotImplementedError


# Server to client


@req("SV-2")
@missing(SERVER)
def test_session_created_names_the_session():
    """`session.created` has the `sessionId` that every later message of the session uses."""
    raise NotImplementedError


@req("SV-2")
@missing(SERVER)
def test_assistant_deltas_join_to_the_answer():
    """The `content` of all `assistant.delta` messages, joined, is the stored answer."""
    raise NotImplementedError


@req("SV-2")
@missing(SERVER)
def test_assistant_done_closes_the_turn_with_metadata():
    """One `assistant.done` with `metadata` is the last message of a turn."""
    raise NotImplementedError


@req("SV-2", "SV-4")
@missing(SERVER)
def test_tool_call_carries_name_and_arguments():
    """`tool.call` has `sessionId`, `toolCallId`, a `name` out of the manifest and the model's `arguments`."""
    raise NotImplementedError


@req("SV-2")
@missing(SERVER)
def test_error_carries_a_message():
    """A failing model produces an `error` with `sessionId` and a readable `message`; the connection stays open."""
    raise NotImplementedError


@req("SV-2")
@missing(SERVER)
def test_heartbeat_keeps_a_quiet_connection():
    """During a slow tool call, `heartbeat` messages arrive and the connection is not closed."""
    raise NotImplementedError


# Correlation


@req("SV-2")
@missing(SERVER)
def test_tool_call_id_is_the_servers():
    """The `toolCallId` on the wire is the id under which the server's history holds that call."""
    raise NotImplementedError


@req("SV-2")
@missing(BOTH)
def test_client_echoes_the_tool_call_id():
    """Two concurrent calls each get their own result; a result with an unknown id is rejected."""
    raise NotImplementedError


# Server side


@req("SV-2", "SV-5")
def test_post_sessions_authenticates_and_returns_an_id(ostler, models):
    """`POST /api/agent/sessions` answers a token with a `sessionId`, and no token with 401."""
    token = ostler("serve", "token", "issue", "ada").stdout.strip()
    with serving(ostler, models) as server:
        status, session = server.request("POST", "/api/agent/sessions", token, {})
        assert status == 201
        assert session["sessionId"]
        assert server.request("POST", "/api/agent/sessions", "", {})[0] == 401


@req("SV-2", "SV-5")
def test_stream_endpoint_serves_its_own_session(ostler, models):
    """`WS /api/agent/sessions/{id}/stream` serves that session to its owner only, and no unknown session."""
    ada, bob = (ostler("serve", "token", "issue", user).stdout.strip() for user in ("ada", "bob"))
    with serving(ostler, models) as server:
        session = server.request("POST", "/api/agent/sessions", ada, {})[1]["sessionId"]
        with server.websocket(session, ada) as stream:
            assert hello(stream)["sessionId"] == session
        assert server.refused_websocket(session, bob) == 404
        assert server.refused_websocket("unknown", ada) == 404


@req("SV-1", "SV-8")
@missing(SERVER)
def test_session_store_survives_a_restart():
    """After a restart, id, messages, tool manifest and workspace root are restored and the session continues."""
    raise NotImplementedError


@req("SV-1", "EN-2")
@missing(SERVER)
def test_second_message_sees_the_first():
    """The model request of the second message holds the first one, its tool results and its answer."""
    raise NotImplementedError


@req("SV-1", "EN-2")
@missing(BOTH)
def test_run_tool_waits_for_the_client():
    """The server calls the model again only after it has the client's result of the forwarded call."""
    raise NotImplementedError


# Tool validation


@req("SV-4")
@missing(SERVER)
def test_tool_outside_the_manifest_is_not_forwarded():
    """A call of an undeclared tool is returned to the model as an error; the client gets nothing."""
    raise NotImplementedError


@req("SV-4", "TL-8")
@missing(SERVER)
def test_arguments_must_match_the_declared_schema():
    """Arguments that violate the manifest's schema are returned to the model as an error; the client gets nothing."""
    raise NotImplementedError


@req("SV-4", "TL-10")
@missing(SERVER)
def test_oversized_output_is_truncated_or_rejected():
    """An output above the limit is truncated with a marker, or rejected, before it enters the history."""
    raise NotImplementedError


# Client side


@req("SV-2")
@missing(CLIENT)
def test_connect_command_chats():
    """`ostler connect` sends `hello`, sends the user's input as `user.message` and prints the deltas."""
    raise NotImplementedError


@req("SV-6", "FS-2")
@missing(CLIENT)
def test_client_refuses_paths_outside_the_root():
    """A server that requests `../secret`, or a symlink that leads outside, gets a failed result without content."""
    raise NotImplementedError


@req("SV-6", "FS-4")
@missing(CLIENT)
def test_client_limits_file_size():
    """A read or write above the client's limit is rejected or truncated by the client."""
    raise NotImplementedError


@req("SV-6", "FS-7")
@missing(CLIENT)
def test_client_deletes_nothing_by_default():
    """A remote deletion, also inside a patch, is denied unless the client's own config allows it."""
    raise NotImplementedError


# Tool additions


@req("TL-2", "TL-4", "FS-4")
@missing("the tools a remote host shows")
def test_read_file_takes_a_line_range():
    """`read_file` with a range returns those lines only."""
    raise NotImplementedError


@req("TL-2")
@missing("the tools a remote host shows")
def test_stat_gives_file_metadata():
    """`stat` returns kind, size and time of a path without its content."""
    raise NotImplementedError


@req("TL-4", "TL-7")
@missing("the tools a remote host shows")
def test_find_files_matches_a_glob():
    """`find_files` returns the workspace files that match the pattern."""
    raise NotImplementedError


@req("TL-2")
@missing("the tools a remote host shows")
def test_mkdir_makes_a_directory():
    """`mkdir` creates a folder, parents included, inside the workspace only."""
    raise NotImplementedError


# Write-back


@req("TL-2", "TL-4")
@missing("write_file_chunk")
def test_each_chunk_is_on_disk_when_its_call_returns():
    """Between two `write_file_chunk` calls the file already holds the first part."""
    raise NotImplementedError


@req("SV-6")
@missing(CLIENT)
def test_client_prints_what_was_written():
    """Results name the written paths, and the client prints a short list of them at the end of the turn."""
    raise NotImplementedError


# Security and policy


@req("SV-5")
def test_one_token_opens_rest_and_websocket(ostler, models):
    """The same bearer token works on both; a wrong or revoked one works on neither."""
    token = ostler("serve", "token", "issue", "ada").stdout.strip()
    with serving(ostler, models) as server:
        session = server.request("POST", "/api/agent/sessions", token, {})[1]["sessionId"]
        with server.websocket(session, token) as stream:
            assert hello(stream)["type"] == "session.created"
        ostler("serve", "token", "revoke", token.split("_")[1])
        for refused in (token, token[:-1], "wrong"):
            assert server.request("GET", f"/api/agent/sessions/{session}", refused)[0] == 401
            assert server.refused_websocket(session, refused) == 401


@req("SV-6", "FS-1")
@missing(CLIENT)
def test_client_sends_a_normalised_root():
    """Started through a symlink or with `--cwd a/../b`, the client announces the resolved root."""
    raise NotImplementedError


@req("SV-4", "SV-6")
@missing(BOTH)
def test_only_manifest_tools_are_callable():
    """A tampered server that calls an undeclared tool gets a failed result from the client itself."""
    raise NotImplementedError


@req("SV-4")
@missing(SERVER)
def test_tool_calls_per_minute_are_limited():
    """Calls above the rate are rejected with an error that names the limit."""
    raise NotImplementedError


# Observability


@req("SV-9")
@missing(SERVER)
def test_server_logs_each_tool_call():
    """A line per call has session, tool, duration and output size, and no content."""
    raise NotImplementedError


@req("SV-9")
@missing(CLIENT)
def test_client_logs_calls_failures_and_writes():
    """The client's log lists which calls ran, which failed and which files were written."""
    raise NotImplementedError


@req("SV-9")
@missing(BOTH)
def test_trace_id_is_in_both_logs():
    """The messages and the logs of both sides have one trace id per turn."""
    raise NotImplementedError


# Backward compatibility


@req("SV-10")
@missing("the legacy chat route")
def test_legacy_chat_stream_still_works():
    """`POST /api/chat/stream` streams a plain chat as server-sent events with a deprecation notice."""
    raise NotImplementedError


@req("SV-10", "SV-2")
@missing("the legacy chat route")
def test_agent_path_is_additive():
    """A legacy chat and an agent session run on one server at the same time, independently."""
    raise NotImplementedError


# Testing


@req("SV-4")
@missing(SERVER)
def test_manifest_validation():
    """Manifests with duplicate names, invalid schemas or excessive size are rejected at `hello`, with a reason."""
    raise NotImplementedError


@req("SV-6", "FS-2")
@missing(CLIENT)
def test_path_policy():
    """A table of hostile paths (climbing, absolute, look-alike, symlink, NUL) is denied by the tool host."""
    raise NotImplementedError


@req("SV-6", "TL-3")
@missing(CLIENT)
def test_tool_dispatch():
    """Every tool of the manifest, called over the wire, reaches its own implementation and returns its result."""
    raise NotImplementedError


@req("SV-1", "SV-2")
@missing(SERVER)
def test_end_to_end_session_with_a_mock_tool_host():
    """A scripted client runs a whole session: hello, message, tool call, result, deltas, done."""
    raise NotImplementedError


@req("TL-2", "SV-4")
@missing("write_file_chunk")
def test_large_output_through_chunked_writes():
    """A file of several megabytes, sent in chunks through the server, is on the client's disk byte for byte."""
    raise NotImplementedError
