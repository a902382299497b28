"""Exports: what was said, without secrets, in a file of its own; and an import that brings words and no rights."""

import html.parser
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.journal.samples import SECRET, keep, turn

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
HERE = SessionOpened("", "/here", "engine", "2")
PLAIN = RecordRedactor(None)
CLEAN = RecordRedactor(Redactor(known_values=["the-known-one"]))


@pytest.fixture
def store(tmp_path):
    return JournalStore(tmp_path)


@pytest.fixture
def place(store):
    return keep(store, events=turn(f"my key is {SECRET} <script>alert(1)</script>", "It says hello.", "the-known-one"))


def exported(place, clean=PLAIN):
    return b"".join(to_json(read_meta(place.folder, place.id), read_journal(place.journal_path), clean.redact_tree))


def page(place, make, clean=PLAIN):
    said = read_conversation(ActiveRecords(read_journal(place.journal_path)))
    return "".join(make(read_meta(place.folder, place.id), said, clean.redact_text))


@pytest.mark.parametrize("make", [to_markdown, to_html])
def test_a_page_has_all_that_was_said_and_what_came_of_it(place, make):
    told = page(place, make)
    for words in ("It says hello.", "Let me look.", "read", "a.txt", "hm", "the-known-one", "/work"):
        assert words in told


@pytest.mark.parametrize("make", [to_markdown, to_html])
def test_what_was_reverted_is_not_on_the_page(store, place, make):
    keep(store, events=[Reverted(4)])
    assert "It says hello." not in page(place, make)
    assert "Let me look." in page(place, make)


@pytest.mark.req("MD-3")
def test_secrets_are_taken_out_of_every_form(place):
    pages = [page(place, to_markdown, CLEAN), page(place, to_html, CLEAN), exported(place, CLEAN).decode()]
    for told in pages:
        assert SECRET not in told
        assert "the-known-one" not in told
        assert "correct-horse-9" not in told
        assert "It says hello." in told
        assert told.count("REDACTED") >= 3


def test_redacted_json_keeps_what_ties_records_together(place):
    told = json.loads(exported(place, CLEAN))
    events = [record["event"] for record in told["records"]]
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


@settings(max_examples=100, deadline=None)
@given(st.lists(texts, min_size=9, max_size=9))
def test_nothing_that_was_said_becomes_markup(said):
    call = ToolCall(said[0], said[1], {said[2]: said[3]})
    image = ImageContent(said[4], said[5], said[6])
    messages = [
        ConversationMessage(1, 1.0, "user", said[7], images=(image, ImageContent("image/png", "AAAA", said[6]))),
        ConversationMessage(2, 1.0, "assistant", said[8], thought=said[7], calls=(call,)),
        ConversationMessage(3, 1.0, "tool", said[7], call_id=said[0], status="ok"),
    ]
    told = "".join(to_html(SessionMeta("s1", cwd=said[0], title=said[1], model=said[2]), messages, str))
    tags = Tags()
    tags.feed(told)
    assert {tag for tag, _ in tags.seen} <= ALLOWED
    assert tags.open == []
    for tag, attributes in tags.seen:
        assert not any(name.startswith("on") for name in attributes)
        if tag == "img":
            assert re.fullmatch(r"data:image/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+", attributes["src"])


def test_the_page_allows_itself_no_script_and_no_network(place):
    tags = Tags()
    tags.feed(page(place, to_html))
    policy = next(a["content"] for tag, a in tags.seen if a.get("http-equiv") == "Content-Security-Policy")
    assert policy == "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@given(st.text(alphabet="`a\n", max_size=40))
def test_no_output_ends_its_fence(text):
    lines = fence_code(text).split("\n")
    assert lines[0] == lines[-2]
    assert not any(line.startswith(lines[0]) for line in lines[1:-2])


def test_terminal_escapes_do_not_reach_a_page(store):
    place = keep(store, events=turn(answer="\x1b]0;owned\x07\x1b[31mred"))
    for make in (to_markdown, to_html):
        assert "\x1b" not in page(place, make)


def test_an_import_has_the_words_and_a_new_id(store, place):
    brought, left = from_json(exported(place), store, "q", HERE)
    assert brought.id != place.id
    said = [(s.role, s.text) for s in read_conversation(read_journal(brought.journal_path))]
    assert said == [(s.role, s.text) for s in read_conversation(read_journal(place.journal_path)) if s.role != "system"]
    meta = read_meta(brought.folder, brought.id)
    assert (meta.cwd, meta.title, meta.turns) == ("/here", read_meta(place.folder, "s1").title, 1)
    assert left == 5


@pytest.mark.req("PM-6")
def test_an_import_brings_no_rules_no_settings_and_no_prompt(store, place):
    brought, _ = from_json(exported(place), store, "q", HERE)
    kinds = {
        read_journal(brought.journal_path).type_at(index) for index in range(len(read_journal(brought.journal_path)))
    }
    assert not kinds & {"rule_added", "option_changed", "prefix_built", "info_changed", "usage_reported", "far_mark"}
    assert any(isinstance(envelope.event, ToolFinished) for envelope in read_journal(brought.journal_path))


def test_an_import_of_an_import_is_the_same_again(store, place):
    first, _ = from_json(exported(place), store, "q", HERE)
    second, left = from_json(exported(first), store, "q", HERE)
    said = [list(read_conversation(read_journal(one.journal_path))) for one in (first, second)]
    assert said[0] == said[1]
    assert left == 2  # where it was, and its title, which are said anew


def broken(change):
    def make(export):
        change(export)
        return json.dumps(export).encode()

    return make


@pytest.mark.parametrize(
    ("harm", "told"),
    [
        (lambda export: b"", "no export"),
        (lambda export: b"[]", "no export"),
        (lambda export: b"\xff\xfe", "no export"),
        (lambda export: b'{"format":' + b"[" * 100_000, "no export"),
        (broken(lambda e: e.update(format="another")), "has the format 'another'"),
        (broken(lambda e: e.update(version=2)), "has the format 'ostler session' 2"),
        (broken(lambda e: e.pop("session")), "no export"),
        (broken(lambda e: e["records"].append({"seq": 1})), "record 12 of the export is damaged"),
        (broken(lambda e: e["records"].append(e["records"][-1])), "record 12 of the export is out of order"),
        (broken(lambda e: e["records"].reverse()), "out of order"),
        (broken(lambda e: e["records"][0].update(seq=-5)), "out of order"),
        (broken(lambda e: e["records"][-1].update(seq=10**17)), "out of order"),
        (broken(lambda e: e["records"][3].update(time=-1)), "record 4 of the export has no possible time"),
        (broken(lambda e: e["records"][3].update(time=1e300)), "no possible time"),
        (broken(lambda e: e["records"][2].update(event={"type": "renamed"})), "record 3 of the export is damaged"),
    ],
)
def test_a_bad_export_is_refused_with_the_place_and_leaves_nothing(store, place, harm, told):
    with pytest.raises(UsageError, match=told):
        from_json(harm(json.loads(exported(place))), store, "q", HERE)
    assert list(store.sessions("q")) == []


def test_an_export_of_nothing_can_be_imported(store):
    place, left = from_json(
        b'{"format":"ostler session","version":1,"session":{"title":[1]},"records":[]}', store, "q", HERE
    )
    assert (left, read_meta(place.folder, place.id).cwd) == (0, "/here")
