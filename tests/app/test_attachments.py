"""What a prompt's mentions bring along, in every way they can be written."""

import pytest

from ostler.app.attachments import MAX_BYTES, AttachmentCollector
from ostler.core.prompt import EmbeddedResource, ResourceLink


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
    ("text", "brought"),
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
async def test_files_are_brought_along_once(work, text, brought):
    attaching = AttachmentCollector(work, allow_outside=True)
    await attaching.add_mentions(text)
    assert {name: block.text for name, block in attaching.blocks.items()} == brought


@pytest.mark.req("CL-2")
async def test_addresses_are_links_and_homes_are_found(work):
    attaching = AttachmentCollector(work, allow_outside=True)
    await attaching.add_mentions("@https://example.org/x and @~/mine.txt")
    link, file = attaching.blocks.values()
    assert link == ResourceLink("https://example.org/x")
    assert isinstance(file, EmbeddedResource) and file.text == "mine"


@pytest.mark.req("CL-2")
async def test_what_no_window_holds_is_left_to_the_agent(work):
    (work / "huge.txt").write_text("x" * (MAX_BYTES + 1))
    attaching = AttachmentCollector(work, allow_outside=True)
    await attaching.add_mentions("look at @huge.txt")
    assert not attaching.blocks
    (told,) = attaching.notices
    assert told.startswith("@huge.txt is sent as it stands: its 1,048,577 bytes are more than can be attached")


@pytest.mark.req("CL-2")
async def test_words_of_pasted_code_that_are_no_files_are_told_in_one_line(work):
    attaching = AttachmentCollector(work, allow_outside=False)
    await attaching.add_mentions("see @a.txt\n" + "".join(f"@decorator{number}\ndef x(): ...\n" for number in range(9)))
    attached, missing = attaching.notices
    assert attached.startswith("attached a.txt")
    assert missing.startswith("sent as they stand, for there are no such files: @decorator0, @decorator1")
    assert missing.endswith("@decorator4 and 4 more")


@pytest.mark.req("CL-2", "FS-2")
async def test_what_cannot_be_had_is_told_and_stays_as_it_is(work):
    attaching = AttachmentCollector(work, allow_outside=False)
    await attaching.add_mentions("@~/mine.txt @gone.txt")
    assert attaching.blocks == {}
    assert [line.partition(" is sent")[0] for line in attaching.notices] == ["@~/mine.txt", "@gone.txt"]
