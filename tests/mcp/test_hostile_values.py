"""Messages of servers with any JSON value in any place: used, shortened or refused, and never an internal error."""

import asyncio

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ostler.core.errors import ToolError
from ostler.core.events import QuestionAsked
from ostler.core.permission import QuestionReply
from ostler.core.tools import ToolSpec
from ostler.interaction.question_form import QuestionForm
from ostler.mcp.client import answer_request, answer_requests, answer_urls
from ostler.mcp.connection import read_progress
from ostler.mcp.tool_results import convert_result
from ostler.mcp.tool_schema import clean_schema
from ostler.tools.base_tool import describe_parameters
from ostler.tools.repair_types import convert_arguments
from ostler.wire.mcp import describe_discovery, describe_handshake, read_prompt, read_resource_entry, read_tool

pytestmark = pytest.mark.req("MC-3", "MC-4")

SCALARS = [None, True, False, 0, -1, 1.5, 10**400, "", "x", "text", "a=b", "\x1b[2J", "image/png", "text/plain", "null"]
KINDS = ["string", "number", "integer", "boolean", "object", "array", "null", "image", "audio", "resource"]
SCHEMA_KEYS = ["type", "properties", "required", "items", "enum", "enumNames", "anyOf", "oneOf", "const", "title"]
SCHEMA_KEYS += ["default", "minimum", "maximum", "description", "$ref", "additionalProperties", "a", "b", "minItems"]
SCHEMA_KEYS += ["exclusiveMinimum", "minLength"]
RESULT_KEYS = ["type", "text", "data", "mimeType", "resource", "uri", "blob", "name", "content", "structuredContent"]


def values(keys):
    """Return any JSON value whose objects have these keys."""
    leaves = st.sampled_from([*SCALARS, *KINDS, "#", "#/properties/a", "https://example.com/x"])
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(keys), inner, max_size=5),
        max_leaves=25,
    )


def objects(keys):
    return st.dictionaries(st.sampled_from(keys), values(keys), max_size=6)


@given(objects(RESULT_KEYS))
@example({"content": [{"type": "image", "mimeType": ["image/png"], "data": {}}]})
def test_any_result_is_converted(result):
    assert isinstance(convert_result(result).for_model, str)


@given(objects(SCHEMA_KEYS), objects(["a", "b", "c"]))
@example({"type": "object", "properties": {"a": {"enum": [[]]}}, "required": ["a"]}, {})
@example({"type": "object", "properties": {"a": {"type": ["string", "null"]}, "b": {}}, "required": ["b"]}, {"a": "x"})
@example({"properties": {"a": {"type": "integer", "exclusiveMinimum": 10**400}}}, {"a": 1})
def test_any_schema_is_cleaned_and_arguments_are_checked_with_it(schema, arguments):
    spec = ToolSpec("server_tool", "other", "", clean_schema(schema))
    assert describe_parameters(spec)
    try:
        convert_arguments(arguments, spec, spec.schema)
    except ToolError as error:
        assert error.fault.code == "bad_arguments"


@given(objects(["progress", "total", "message"]))
@example({"progress": 10**400, "total": -(10**400)})
def test_any_progress_is_read(params):
    assert isinstance(read_progress(params).progress, float)


@given(values(SCHEMA_KEYS), st.lists(st.sampled_from(["", "1", "2", "1,2", "y", "x", "0"]), min_size=12, max_size=12))
@example({"properties": {"a": {}}, "required": [{}]}, [""] * 12)
@example({"properties": {"a": {"enum": ["x"], "enumNames": [{}]}}}, ["1"] * 12)
@example({"properties": {"a": {"type": "number", "minimum": 10**400}}}, ["1"] * 12)
@example({"properties": {"a": {"type": "array", "items": {"enum": [[]]}}}}, ["1,2"] * 12)
def test_any_form_can_be_shown_and_answered(schema, lines):
    async def ask(question):
        form, reply = QuestionForm(QuestionAsked(msgspec.structs.replace(question, id="q"))), None
        for line in lines:
            assert isinstance(form.menu().prompt, str)
            assert all(isinstance(label, str) for label in form.field_choices)
            assert isinstance(form.field_description, str)
            if reply := form.submit(line):
                return reply
        return QuestionReply("cancel")

    answer = asyncio.run(answer_request({"message": "m", "requestedSchema": schema}, ask))
    assert answer["action"] in ("accept", "decline", "cancel")


@given(values(["a", "method", "params", "elicitations", "url", "message", "requestedSchema"]))
def test_any_input_request_is_answered(requests):
    async def ask(question):
        return QuestionReply("accept", {})

    assert isinstance(asyncio.run(answer_requests(requests, ask)), dict)
    assert isinstance(asyncio.run(answer_urls(requests, ask)), bool)


@given(objects(["name", "description", "title", "inputSchema", "annotations", "execution", "arguments", "uri"]))
def test_any_declaration_is_read_or_left_out(value):
    for read in (read_tool, read_prompt, read_resource_entry):
        read(value)


@given(objects(["protocolVersion", "capabilities", "serverInfo", "instructions", "_meta", "tools", "prompts"]))
def test_any_description_of_a_server_is_read(result):
    for describe in (describe_discovery, describe_handshake):
        describe(result).announces_changes("tools")
