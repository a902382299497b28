"""Test the counter of unclear phrases: which texts it reads, what it ignores, and every pattern."""

import pytest

from tasks import phrases

SAMPLES = {
    "nobody home": "Refused, because nobody can be asked.",
    "told of": "The user is told of the change.",
    "since N s": "Loading since 5 s.",
    "mend": "It mends the file.",
    "what destroys": "Deny what destroys.",
    "may:": "This run may: read.",
    "laid aside": "The draft is laid aside.",
    "stands": "It is sent as it stands.",
    "is no X": "This is no directory.",
    "whoever": "Ask whoever wrote it.",
    "counts": "The later file counts.",
    "taken back": "The change is taken back.",
    "vouch": "You can vouch for it.",
    "lest, but for": "Lock it, lest two write.",
    "takes no words": "The command takes no words.",
    "What … is …": "What cannot be read is skipped.",
}
PHRASE = "taken back"
MODULE = '''
"""The module's {phrase}."""
# A comment, {phrase}.
MESSAGE = "the change was {phrase} now"
VALUE = 1
FORMATTED = f"{{VALUE}} changes were {phrase} in {{VALUE}} files"


def function():
    """It is {phrase}."""
'''


@pytest.fixture
def root(tmp_path, monkeypatch):
    """An empty project that the counter reads instead of this one."""
    for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md"):
        (tmp_path / name).touch()
    (tmp_path / "docs").mkdir()
    (tmp_path / "src").mkdir()
    monkeypatch.setattr(phrases, "ROOT", tmp_path)
    return tmp_path


def find_all():
    """Return (kind, file name, line) of every hit."""
    texts = (*phrases.docs_texts(), *phrases.source_texts())
    return [(text.kind, hit.path.name, hit.line) for text in texts for hit in phrases.find_hits(text)]


def find_in(sentence):
    return [hit.phrase for hit in phrases.find_hits(phrases.Text("docs", phrases.ROOT, 1, sentence))]


def test_every_pattern_has_a_sample():
    assert set(SAMPLES) == set(phrases.PHRASES)


@pytest.mark.parametrize("name", SAMPLES)
def test_pattern_is_found_once(name):
    assert len(find_in(SAMPLES[name])) == 1
    assert phrases.re.search(phrases.PHRASES[name], SAMPLES[name])


@pytest.mark.parametrize(
    "sentence",
    [
        "There is no directory.",
        "It is no longer used.",
        "As soon as it is ready, send it.",
        "What is a session?",
        "The change is undone.",
        "Ostler reports the number of files.",
    ],
)
def test_ordinary_sentence_has_no_hit(sentence):
    assert find_in(sentence) == []


def test_phrases_in_docs_pages_are_found(root):
    (root / "README.md").write_text(f"One line.\n\nIt is {PHRASE}.\n")
    (root / "docs" / "deep").mkdir()
    (root / "docs" / "deep" / "page.md").write_text(f"It is {PHRASE}.\n")
    assert find_all() == [("docs", "README.md", 3), ("docs", "page.md", 1)]


def test_phrases_in_prompts_are_messages(root):
    (root / "src" / "prompt.md").write_text(f"It is {PHRASE}.\n")
    assert find_all() == [("messages", "prompt.md", 1)]


def test_phrases_in_docstrings_comments_messages_and_f_strings_are_found(root):
    (root / "src" / "module.py").write_text(MODULE.format(phrase=PHRASE))
    assert sorted(find_all(), key=lambda hit: hit[2]) == [
        ("docstrings and comments", "module.py", 2),
        ("docstrings and comments", "module.py", 3),
        ("messages", "module.py", 4),
        ("messages", "module.py", 6),
        ("docstrings and comments", "module.py", 10),
    ]


def test_backquoted_text_and_code_blocks_are_ignored(root):
    page = f"It is `{PHRASE}`.\n\n```\nIt is {PHRASE}.\n```\n\n    It is {PHRASE}.\n\nIt is ``{PHRASE}``.\n"
    (root / "docs" / "page.md").write_text(page)
    (root / "src" / "module.py").write_text(f'"""It is `{PHRASE}`."""\n# It is `{PHRASE}`.\n')
    assert find_all() == []


def test_short_strings_and_data_are_not_messages(root):
    (root / "src" / "module.py").write_text(f'KEY = "{PHRASE}"\nDATA = b"it was {PHRASE} now"\n')
    assert find_all() == []


@pytest.mark.parametrize(("words", "status"), [(1000, 1), (2000, 0)])
def test_status_is_1_above_the_limit(root, capsys, words, status):
    (root / "README.md").write_text(f"It is {PHRASE}. " + "word " * (words - 4) + "\n")
    assert phrases.main() == status
    printed = capsys.readouterr().out
    assert f"README.md:1: {PHRASE}" in printed and f"docs: 1 in {words:,} words" in printed
