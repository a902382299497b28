"""Exports without secrets, and imports that bring only the conversation."""

import html.parser
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.journal.samples import SECRET, save_session, turn
from tests.tiers import examples

from ostler.core.errors import UsageError
from ostler.core.events import Reverted, SessionOpened, ToolFinished
from ostler.core.prompt import ImageContent
from ostler.core.tools import ToolCall
from ostler.journal.active_records import ActiveRecords
from ostler.journal.conversation import ConversationMessage, read_conversation
from ostler.journal.export_html import to_html
from ostler.journal.export_json import from_json, to_json
from ostler.journal.export_markdown import fence_code, to_markdown
from ostler.journal.file_journal import read_journal
from ostler.journal.journal_store import JournalStore
from ostler.journal.record_redaction import RecordRedactor
from ostler.journal.session_meta import SessionMeta, read_meta
from ostler.text.redact import Redactor

pytestmark = pytest.mark.req("SE-3")
OPENED_HERE = SessionOpened("", "/here", "engine", "2")
PLAIN = RecordRedactor(None)
REDACTING = RecordRedactor(Redactor(known_values=["the-known-one"]))


@pytest.fixture
def store(tmp_path):
    return JournalStore(tmp_path)


@pytest.fixture
def session(store):
    return save_session(
        store, events=turn(f"my key is {SECRET} <script>alert(1)</script>", "It says hello.", "the-known-one")
    )


def export(session, redactor=PLAIN):
    return b"".join(
        to_json(read_meta(session.folder, session.id), read_journal(session.journal_path), redactor.redact_tree)
    )


def page(session, render, redactor=PLAIN):
    messages = read_conversation(ActiveRecords(read_journal(session.journal_path)))
    return "".join(render(read_meta(session.folder, session.id), messages, redactor.redact_text))


@pytest.mark.parametrize("make", [to_markdown, to_html])
def test_page_has_messages_and_results(session, make):
    content = page(session, make)
    for text in ("It says hello.", "Let me look.", "read", "a.txt", "hm", "the-known-one", "/work"):
        assert text in content


@pytest.mark.parametrize("make", [to_markdown, to_html])
def test_reverted_messages_are_not_on_the_page(store, session, make):
    save_session(store, events=[Reverted(4)])
    assert "It says hello." not in page(session, make)
    assert "Let me look." in page(session, make)


@pytest.mark.req("MD-3")
def test_secrets_are_redacted_in_every_format(session):
    pages = [
        page(session, to_markdown, REDACTING),
        page(session, to_html, REDACTING),
        export(session, REDACTING).decode(),
    ]
    for content in pages:
        assert SECRET not in content
        assert "the-known-one" not in content
        assert "correct-horse-9" not in content
        assert "It says hello." in content
        assert content.count("REDACTED") >= 3


def test_redacted_json_keeps_ids_and_images(session):
    data = json.loads(export(session, REDACTING))
    events = [record["event"] for record in data["records"]]
    calls = [part["call"]["id"] for e in events if e["type"] == "message_done" for part in e["message"]["parts"][2:]]
    assert calls == [e["result"]["call_id"] for e in events if e["type"] == "tool_finished"]
    assert [b["data"] for e in events if e["type"] == "turn_started" for b in e["prompt"]["blocks"][1:]] == [
        "iVBORw0KGgo="
    ]


ALLOWED = {"html", "head", "meta", "title", "style", "body", "h1", "dl", "dt", "dd", "article", "header", "p"}
ALLOWED |= {"details", "summary", "pre", "strong", "img"}


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen, self.open = [], []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("meta", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


texts = st.text(max_size=60) | st.sampled_from(
    ["<script>x</script>", "</pre>", '"><img src=x onerror=y>', "&amp;", "]]>"]
)


@examples(100)
@given(st.lists(texts, min_size=9, max_size=9))
def test_message_text_never_becomes_markup(parts):
    call = ToolCall(parts[0], parts[1], {parts[2]: parts[3]})
    image = ImageContent(parts[4], parts[5], parts[6])
    messages = [
        ConversationMessage(1, 1.0, "user", parts[7], images=(image, ImageContent("image/png", "AAAA", parts[6]))),
        ConversationMessage(2, 1.0, "assistant", parts[8], thought=parts[7], calls=(call,)),
        ConversationMessage(3, 1.0, "tool", parts[7], call_id=parts[0], status="ok"),
    ]
    content = "".join(to_html(SessionMeta("s1", cwd=parts[0], title=parts[1], model=parts[2]), messages, str))
    tags = Tags()
    tags.feed(content)
    assert {tag for tag, _ in tags.seen} <= ALLOWED
    assert tags.open == []
    for tag, attributes in tags.seen:
        assert not any(name.startswith("on") for name in attributes)
        if tag == "img":
            assert re.fullmatch(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+", attributes["src"])


def test_page_forbids_scripts_and_network(session):
    tags = Tags()
    tags.feed(page(session, to_html))
    policy = next(a["content"] for tag, a in tags.seen if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@given(st.text(alphabet="`a\n", max_size=40))
def test_text_cannot_end_its_fence(text):
    lines = fence_code(text).split("\n")
    assert lines[0] == lines[-2]
    assert not any(line.startswith(lines[0]) for line in lines[1:-2])


def test_terminal_escapes_are_removed(store):
    session = save_session(store, events=turn(answer="\x1b]0;owned\x07\x1b[31mred"))
    for make in (to_markdown, to_html):
        assert "\x1b" not in page(session, make)


def test_import_has_the_messages_and_a_new_id(store, session):
    imported, skipped = from_json(export(session), store, "q", OPENED_HERE)
    assert imported.id != session.id
    messages = [(s.role, s.text) for s in read_conversation(read_journal(imported.journal_path))]
    assert messages == [
        (s.role, s.text) for s in read_conversation(read_journal(session.journal_path)) if s.role != "system"
    ]
    meta = read_meta(imported.folder, imported.id)
    assert (meta.cwd, meta.title, meta.turns) == ("/here", read_meta(session.folder, "s1").title, 1)
    assert skipped == 5


@pytest.mark.req("PM-6")
def test_import_brings_no_rules_settings_or_system_prompt(store, session):
    imported, _ = from_json(export(session), store, "q", OPENED_HERE)
    kinds = {
        read_journal(imported.journal_path).type_at(index) for index in range(len(read_journal(imported.journal_path)))
    }
    assert not kinds & {"rule_added", "option_changed", "prefix_built", "info_changed", "usage_reported", "far_mark"}
    assert any(isinstance(envelope.event, ToolFinished) for envelope in read_journal(imported.journal_path))


def test_import_of_an_import_is_the_same(store, session):
    first, _ = from_json(export(session), store, "q", OPENED_HERE)
    second, skipped = from_json(export(first), store, "q", OPENED_HERE)
    messages = [list(read_conversation(read_journal(imported.journal_path))) for imported in (first, second)]
    assert messages[0] == messages[1]
    assert skipped == 2  # the opening and the title, which are written again


def changed(change):
    def make(export):
        change(export)
        return json.dumps(export).encode()

    return make


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda export: b"", "not a session export"),
        (lambda export: b"[]", "not a session export"),
        (lambda export: b"\xff\xfe", "not a session export"),
        (lambda export: b'{"format":' + b"[" * 100_000, "not a session export"),
        (changed(lambda e: e.update(format="another")), "has the format 'another'"),
        (changed(lambda e: e.update(version=2)), "has the format 'ostler session' 2"),
        (changed(lambda e: e.pop("session")), "not a session export"),
        (changed(lambda e: e["records"].append({"seq": 1})), "record 12 of the export is damaged"),
        (changed(lambda e: e["records"].append(e["records"][-1])), "record 12 of the export is out of order"),
        (changed(lambda e: e["records"].reverse()), "out of order"),
        (changed(lambda e: e["records"][0].update(seq=-5)), "out of order"),
        (changed(lambda e: e["records"][-1].update(seq=10**17)), "out of order"),
        (changed(lambda e: e["records"][3].update(time=-1)), "record 4 of the export has an invalid time"),
        (changed(lambda e: e["records"][3].update(time=1e300)), "invalid time"),
        (changed(lambda e: e["records"][2].update(event={"type": "renamed"})), "record 3 of the export is damaged"),
    ],
)
def test_invalid_export_is_refused_and_nothing_is_stored(store, session, damage, message):
    with pytest.raises(UsageError, match=message):
        from_json(damage(json.loads(export(session))), store, "q", OPENED_HERE)
    assert list(store.sessions("q")) == []


def test_empty_export_can_be_imported(store):
    imported, skipped = from_json(
        b'{"format":"ostler session","version":1,"session":{"title":[1]},"records":[]}', store, "q", OPENED_HERE
    )
    assert (skipped, read_meta(imported.folder, imported.id).cwd) == (0, "/here")
