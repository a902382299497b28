"""Files that a prompt mentions are attached."""

import base64

import pytest

from ostler.core.prompt import EmbeddedResource, ImageContent, ResourceLink
from ostler.knowledge.attachments import MAX_BYTES, AttachmentCollector
from ostler.workspace.images import MAX_IMAGE_BYTES


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.txt").write_text("mine")
    folder = tmp_path / "work"
    (folder / "sub" / "deeper").mkdir(parents=True)
    (folder / "sub" / "x.txt").write_text("x")
    (folder / "a.txt").write_text("alpha")
    (folder / "b c.txt").write_text("blanks")
    return folder


@pytest.mark.req("CL-2")
@pytest.mark.parametrize(
    ("text", "attached"),
    [
        ("see @a.txt, please", {"a.txt": "alpha"}),
        ("see @file:a.txt.", {"a.txt": "alpha"}),
        ("see @'b c.txt' and @\"a.txt\"", {"b c.txt": "blanks", "a.txt": "alpha"}),
        ("see @file:'b c.txt' and @file:\"a.txt\"", {"b c.txt": "blanks", "a.txt": "alpha"}),
        ("twice @a.txt @./a.txt", {"a.txt": "alpha"}),
        ("a folder @sub/", {"sub": "deeper/\nx.txt"}),
        ("and so on: @a.txt… 「@sub/x.txt」 （@file:a.txt）。", {"a.txt": "alpha", "sub/x.txt": "x"}),
        ("mail me@a.txt or @agent:plan, @file: and @file", {}),
    ],
)
async def test_files_are_attached_once(work, text, attached):
    collector = AttachmentCollector(work, allow_outside=True)
    await collector.add_mentions(text)
    assert {name: block.text for name, block in collector.blocks.items()} == attached


@pytest.mark.req("CL-2")
async def test_urls_are_links_and_home_is_expanded(work):
    collector = AttachmentCollector(work, allow_outside=True)
    await collector.add_mentions("@https://example.org/x and @~/mine.txt")
    link, file = collector.blocks.values()
    assert link == ResourceLink("https://example.org/x")
    assert isinstance(file, EmbeddedResource) and file.text == "mine"


@pytest.mark.req("CL-2", "TL-12")
@pytest.mark.parametrize(
    ("head", "mime"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\1\2\3\4WEBP", "image/webp"),
    ],
)
async def test_images_are_attached_as_images(work, head, mime):
    (work / "shot").write_bytes(data := head + bytes(MAX_BYTES))
    collector = AttachmentCollector(work, allow_outside=True)
    await collector.add_mentions("what is wrong in @shot and in @./shot?")
    assert collector.blocks == {"shot": ImageContent(mime, base64.b64encode(data).decode(), "shot")}
    assert collector.notices == ["attached shot (image)"]


@pytest.mark.req("CL-2", "TL-12")
@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"\x89PNG\r\n\x1a\n" + bytes(MAX_IMAGE_BYTES), "larger than 5,242,880 bytes"), (b"%PDF-1.7\0", "not text")],
)
async def test_images_that_are_too_large_and_other_binary_files_are_not_attached(work, data, reason):
    (work / "file").write_bytes(data)
    collector = AttachmentCollector(work, allow_outside=True)
    await collector.add_mentions("look at @file")
    assert not collector.blocks
    (notice,) = collector.notices
    assert notice.startswith("@file was not attached: ") and reason in notice


@pytest.mark.req("CL-2")
async def test_large_file_is_not_attached(work):
    (work / "huge.txt").write_text("x" * (MAX_BYTES + 1))
    collector = AttachmentCollector(work, allow_outside=True)
    await collector.add_mentions("look at @huge.txt")
    assert not collector.blocks
    (notice,) = collector.notices
    assert notice.startswith("@huge.txt was not attached: the file is too large (1,048,577 bytes)")


@pytest.mark.req("CL-2")
async def test_missing_files_share_one_notice(work):
    collector = AttachmentCollector(work, allow_outside=False)
    await collector.add_mentions("see @a.txt\n" + "".join(f"@decorator{number}\ndef x(): ...\n" for number in range(9)))
    attached, missing = collector.notices
    assert attached.startswith("attached a.txt")
    assert missing.startswith("not attached, no such file: @decorator0, @decorator1")
    assert missing.endswith("@decorator4 and 4 more (sent as plain text)")


@pytest.mark.req("CL-2", "FS-2")
async def test_unattached_file_causes_a_notice(work):
    collector = AttachmentCollector(work, allow_outside=False)
    await collector.add_mentions("@~/mine.txt @gone.txt")
    assert collector.blocks == {}
    assert [line.partition(" was not")[0] for line in collector.notices] == ["@~/mine.txt", "@gone.txt"]
