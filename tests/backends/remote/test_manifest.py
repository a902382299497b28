import pytest

from ostler.backends.remote.tool_role import make_manifest
from ostler.core.tools import ToolSpec
from ostler.frontends.server.host_link import check_manifest


def spec(name, **schema):
    return ToolSpec(name, "other", "Does something.", {"type": "object", **schema})


@pytest.mark.req("SV-4")
def test_a_tool_that_the_server_would_refuse_is_left_out_with_the_reason():
    lookahead = spec("send_mail", properties={"to": {"type": "string", "pattern": r"^(?!\.)[a-z]+@"}})
    nullable = spec("nullable", type=["object", "null"])
    refused = {
        "strange": spec("strange", properties={"a": {"type": "any"}}),
        "elsewhere": spec("elsewhere", properties={"a": {"$ref": "https://example.com/schema"}}),
        "large": spec("large", description="x" * 70_000),
        "a b": spec("a b"),
        "array": spec("array", type="array"),
    }
    manifest, left_out = make_manifest([lookahead, *refused.values(), nullable])
    assert left_out.keys() == refused.keys()
    assert "not a type" in left_out["strange"]
    tools = check_manifest(manifest)
    assert list(tools) == ["send_mail", "nullable"]
    assert tools["nullable"].schema["type"] == "object"


@pytest.mark.req("SV-4")
def test_tools_beyond_the_limits_are_left_out():
    many = [spec(f"tool{number}") for number in range(300)]
    manifest, left_out = make_manifest(many)
    assert (len(check_manifest(manifest)), len(left_out)) == (256, 44)
    large = [spec(f"tool{number}", description="x" * 60_000) for number in range(20)]
    manifest, left_out = make_manifest(large)
    assert len(check_manifest(manifest)) + len(left_out) == 20 and left_out
