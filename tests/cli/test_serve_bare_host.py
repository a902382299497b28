"""`ostler serve` with a tool host that knows only the base protocol and its own tool names."""

import pytest
from tests.frontends.server.server_client import LS
from tests.serving import serving

from ostler.testing.model_server import calls, text


@pytest.mark.req("SV-1", "SV-4", "TL-2")
def test_bare_tool_host_writes_a_large_file(ostler, models, tmp_path):
    """A host that knows only the specification's names gets every chunk, under the name it declared."""
    fields = {"filename": {"type": "string"}, "content": {"type": "string"}, "truncate": {"type": "boolean"}}
    schema = {"type": "object", "properties": fields, "required": ["filename", "content"]}
    tool = {"name": "write_file_chunk", "description": "Write a part of a file.", "inputSchema": schema}
    parts = [f"{number:06d} ✓\n" * 1_000 for number in range(6)]
    replies = [
        calls([("write_file_chunk", {"filename": "out", "content": part, "truncate": part is parts[0]})])
        for part in parts
    ]
    token = ostler("serve", "token", "issue", "ada").stdout.strip()
    with (
        serving(ostler, models, replies=[*replies, text("written")]) as server,
        server.client(token).host(tools=(LS, tool), root=str(tmp_path)) as host,
    ):
        host.say("write it")
        while (frame := host.receive())["type"] != "assistant.done":
            if frame["type"] == "tool.call":
                assert frame["name"] == "write_file_chunk"
                chunk = frame["arguments"]
                with (tmp_path / chunk["filename"]).open("w" if chunk["truncate"] else "a") as file:
                    file.write(chunk["content"])
                host.answer(frame, f"wrote {len(chunk['content'])} characters to {chunk['filename']}")
    assert (tmp_path / "out").read_text() == "".join(parts)
