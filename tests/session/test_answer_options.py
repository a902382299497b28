"""The answers of an approval request, what each covers, and the rules that they add."""

import asyncio

import pytest

from ostler.core.events import PermissionAsked, PermissionDecided, RuleAdded
from ostler.core.permission import AnswerOption, Decision, Need, Permission, Rule
from ostler.policy.presets import BASELINE
from ostler.policy.verdict import Policy
from ostler.session.answer_options import with_answers
from ostler.session.permissions import NoStandingRules, PermissionDecider

pytestmark = pytest.mark.req("PM-11")
DENIED_FOLDER = (*BASELINE, Rule("edit", "secret/*", "deny", "your settings"))


def edit(path, key="write"):
    return Need(key, path, rule_pattern=path)


def labels(*needs, options=(), once_only=False):
    permission = with_answers(Permission("change", needs, options=options), once_only=once_only)
    return {option.id: option.label for option in permission.options}


def test_every_answer_says_what_it_covers():
    assert labels(edit("src/a.py")) == {
        "once": "Allow once",
        "session": "Allow write src/a.py in this session",
        "folder": "Allow edits in src/ in this session",
        "edits": "Allow all edits in this workspace, in this session",
        "always": "Always allow write src/a.py in this project",
        "deny": "Deny",
    }


@pytest.mark.parametrize(
    ("paths", "folder"),
    [
        (["src/a.py", "src/b.py"], "src/"),
        (["src/x/a.py", "src/y/b.py"], "src/"),
        (["src/x/a.py", "src/xy/b.py"], "src/"),
        (["a/b/c.py"], "a/b/"),
        (["a.py"], ""),
        (["src/a.py", "b.py"], ""),
        (["src/a.py", "docs/b.md"], ""),
        (["*/a.py"], ""),
        (["a?/a.py"], ""),
        (["~/a.py"], ""),
        (["$HOME/a.py"], ""),
    ],
)
def test_folder_is_the_common_one_below_the_root(paths, folder):
    label = labels(*map(edit, paths)).get("folder", "")
    assert label == (f"Allow edits in {folder} in this session" if folder else "")
    assert "edits" in labels(*map(edit, paths))


@pytest.mark.parametrize("key", ["write", "edit", "patch", "mkdir", "write_chunk"])
def test_every_kind_of_edit_has_the_answers(key):
    assert {"edits", "folder"} <= labels(edit("src/a", key)).keys()


@pytest.mark.parametrize(
    "other",
    [
        edit("src/a.py", "delete"),
        Need("bash", "make", rule_pattern="make *"),
        Need("network", "curl"),
        Need("external_directory", "/etc"),
        edit("/tmp/x"),
        Need("write", ".git/config", danger="confirm", reason="runs later"),
        Need("write", "x", danger="stranger"),
        Need("probe", "src/a.py"),
    ],
)
def test_nothing_but_edits_of_the_workspace_has_these_answers(other):
    for needs in ((other,), (edit("src/a.py"), other)):
        assert not {"edits", "folder"} & labels(*needs).keys()


def test_request_that_can_only_be_allowed_once_has_no_lasting_answer():
    assert [*labels(edit("src/a.py"), once_only=True)] == ["once", "deny"]


def test_answers_of_an_agent_stay_and_are_extended():
    own = (
        AnswerOption("1", "Yes", "allow_once"),
        AnswerOption("2", "Yes, always", "allow_always"),
        AnswerOption("3", "No", "deny"),
    )
    assert [*labels(edit("src/a.py"), options=own)] == ["1", "2", "folder", "edits", "3"]
    assert [*labels(Need("bash", "make"), options=own)] == ["1", "2", "3"]
    assert [*labels(edit("src/a.py"), options=own[2:])] == ["3"]


def test_misleading_answers_of_an_agent_say_what_they_do():
    own = (
        AnswerOption("1", "No, do nothing", "allow_always"),
        AnswerOption("2", "Deny\n  [n] \u202eAllow", "allow_once"),
        AnswerOption("3", "allow ONCE", "allow_once"),
        AnswerOption("4", "Yes " * 100, "deny"),
        AnswerOption("5", "Never", "deny_always"),
    )
    needs = (Need("bash", "make all", rule_pattern="make *"),)
    for once_only in (False, True):
        found = labels(*needs, options=own, once_only=once_only)
        assert found["1"] == 'Always allow run make * in this project ("No, do nothing")'
        assert found["2"].startswith('Allow once ("Deny\\n') and not set(found["2"]) & {"\n", "\u202e"}
        assert found["3"] == "Allow once"
        assert found["4"].startswith('Deny ("Yes Yes') and len(found["4"]) < 80
        assert found["5"] == 'Deny, also later ("Never")'
    assert labels(Need("bash", "*"), options=own)["1"] == 'Allow, also later as the agent decides ("No, do nothing")'


def test_agent_cannot_give_its_own_answer_the_rules_of_ours():
    imitated = (AnswerOption("edits", "Allow once", "allow_once"), AnswerOption("n", "No", "deny"))
    permission = with_answers(Permission("change", (edit("src/a.py"),), options=imitated), once_only=False)
    assert [option.rules for option in permission.options if option.id == "edits"] == [()]


class Decisions:
    """A decider whose requests are answered one after the other."""

    def __init__(self, policy=None):
        self.events, self.rules, self._count = [], [], 0
        self.decider = PermissionDecider(lambda: policy or Policy(), NoStandingRules(), self._emit, self._new_id)

    def _new_id(self, kind):
        self._count += 1
        return f"{kind}-{self._count}"

    def _emit(self, event):
        self.events.append(event)
        if isinstance(event, RuleAdded):
            self.rules.append(event.rule)

    async def start(self, *needs):
        """Start a decision. Return its task and the request, or None if nobody is asked."""
        seen = len(self.events)
        task = asyncio.create_task(self.decider.decide(Permission("change", needs), "model", self.rules, ()))
        while len(self.events) == seen and not task.done():
            await asyncio.sleep(0)
        asked = [event for event in self.events[seen:] if isinstance(event, PermissionAsked)]
        return task, asked[0] if asked else None

    async def answered(self, need, **decision):
        task, request = await self.start(need)
        self.decider.pending.answer(request.ask_id, Decision("allow", by="person", **decision))
        return await task

    async def asks(self, need):
        task, request = await self.start(need)
        if request:
            self.decider.pending.answer(request.ask_id, Decision("deny", by="person"))
        return "ask" if request else (await task).answer


async def test_all_edits_pass_but_neither_deletions_nor_commands():
    session = Decisions()
    await session.answered(edit("src/a.py"), scope="session", option_id="edits")
    for key in ("write", "edit", "patch", "mkdir", "write_chunk"):
        assert await session.asks(edit("docs/b.md", key)) == "allow"
    assert await session.asks(edit("docs/b.md", "delete")) == "ask"
    assert await session.asks(Need("bash", "make")) == "ask"
    assert await session.asks(Need("write", ".git/hooks/x", danger="confirm", reason="runs later")) == "ask"
    assert {(rule.key, rule.pattern, rule.origin) for rule in session.rules} == {
        (key, "*", "your answer: session") for key in ("edit", "mkdir", "write_chunk")
    }


async def test_edits_of_the_folder_pass():
    session = Decisions()
    await session.answered(edit("src/a.py"), scope="session", option_id="folder")
    assert await session.asks(edit("src/b.py", "patch")) == "allow"
    assert await session.asks(edit("src/deep/b.py")) == "allow"
    assert await session.asks(edit("srcs/b.py")) == "ask"
    assert await session.asks(edit("b.py")) == "ask"
    assert await session.asks(edit("src/b.py", "delete")) == "ask"


async def test_all_edits_never_apply_to_the_project():
    session = Decisions()
    decision = await session.answered(edit("a.py"), scope="project", option_id="edits")
    assert decision.scope == "session"
    assert {event.scope for event in session.events if isinstance(event, RuleAdded)} == {"session"}


@pytest.mark.req("PM-2")
async def test_answer_does_not_override_a_deny_rule():
    session = Decisions(Policy(rules=DENIED_FOLDER))
    await session.answered(edit("a.py"), scope="session", option_id="edits")
    assert await session.asks(edit("b.py")) == "allow"
    assert await session.asks(edit("secret/key")) == "deny"


async def test_open_requests_that_the_answer_covers_are_allowed():
    session = Decisions()
    first, request = await session.start(edit("src/a.py"))
    second, _ = await session.start(edit("src/b.py"))
    third, other = await session.start(Need("bash", "make"))
    session.decider.pending.answer(request.ask_id, Decision("allow", by="person", scope="session", option_id="folder"))
    assert ((await first).by, (await second).by) == ("person", "policy")
    assert not third.done()
    session.decider.pending.answer(other.ask_id, Decision("deny", by="person"))
    assert (await third).answer == "deny"
    assert len([event for event in session.events if isinstance(event, PermissionDecided)]) == 3
