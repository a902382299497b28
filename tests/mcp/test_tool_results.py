"""Results of MCP calls: content once, images, notes for what is left out."""

import pytest

from ostler.mcp.tool_results import MAX_IMAGES, convert_result

pytestmark = pytest.mark.req("MC-3")


def text(value):
    return {"type": "text", "text": value}


def test_text_is_sent_once_although_it_is_also_structured():
    result = convert_result({"content": [text('{"a": 1}')], "structuredContent": {"a": 1}})
    assert (result.status, result.for_model, result.data) == ("ok", '{"a": 1}', {"a": 1})


def test_structured_content_is_used_without_other_content():
    assert convert_result({"content": [], "structuredContent": {"a": 1}}).for_model == '{"a":1}'


def test_error_contains_what_only_the_structured_content_says():
    result = convert_result({"content": [text("failed")], "isError": True, "structuredContent": {"why": "no disk"}})
    assert result.status == "failed"
    assert result.for_model == 'failed\n{"why":"no disk"}'


def test_error_message_is_not_repeated():
    result = convert_result({"content": [text("no disk")], "isError": True, "structuredContent": {"why": "no disk"}})
    assert result.for_model == "no disk"


@pytest.mark.parametrize(
    ("block", "note"),
    [
        ({"type": "audio", "mimeType": "audio/wav", "data": "x"}, "[audio (audio/wav) was left out]"),
        ({"type": "image", "mimeType": "image/tiff", "data": "x"}, "[an image (image/tiff) was left out: unsupported]"),
        ({"type": "new"}, "[content of type new was left out]"),
        ({"type": "resource", "resource": 3}, "[an invalid resource was left out]"),
        (7, "[an invalid content block was left out]"),
    ],
)
def test_unsupported_block_leaves_a_note(block, note):
    assert convert_result({"content": [text("a"), block]}).for_model == f"a\n{note}"


def test_images_are_passed_on_up_to_a_limit():
    image = {"type": "image", "mimeType": "image/png", "data": "aGk="}
    result = convert_result({"content": [image] * (MAX_IMAGES + 1)})
    assert len(result.images) == MAX_IMAGES
    assert "more than" in result.for_model


def test_resource_with_text_is_included():
    block = {"type": "resource", "resource": {"uri": "file:///a", "text": "inside"}}
    assert convert_result({"content": [block]}).for_model == "[resource file:///a]\ninside"


@pytest.mark.parametrize("result", [{}, {"content": 3}, {"content": []}])
def test_empty_result_says_so(result):
    assert convert_result(result).for_model == "(no output)"
