"""What a session's prompt is made of, in which order, how large, and at what price."""

import json
import subprocess
import sys

import msgspec
import pytest

from ostler.app.engine import join_sections, prompt_sections
from ostler.app.project_knowledge import ProjectKnowledge
from ostler.app.tool_host import builtin_tools
from ostler.backends.engine.request_prefix import build_prefix, fixed_size
from ostler.backends.engine.system_prompt import base_prompt
from ostler.tools.task import TaskTool

EVERYTHING = {
    "~/.ostler/AGENTS.md": "Use tabs.",
    "AGENTS.md": "Use spaces.",
    "docs/style.md": "Short names.",
    ".ostler/skills/pdf/SKILL.md": "---\ndescription: Reads PDF files.\n---\nHow to.",
    ".ostler/config.json": json.dumps({"instructions": ["docs/*.md"]}),
    ".git/HEAD": "ref: refs/heads/main\n",
}


def known(land):
    return ProjectKnowledge(str(land.work), land.settings(), land.env)


@pytest.mark.req("EN-7")
def test_the_order_of_the_parts(land):
    land.write(EVERYTHING)
    parts = known(land).prompt_sections("Base.", with_skills=True)
    assert [(part.name, part.origin) for part in parts] == [
        ("system prompt", "Ostler"),
        ("global rules", "~/.ostler/AGENTS.md"),
        ("project rules", "AGENTS.md"),
        ("instructions", "docs/style.md"),
        ("skills", "1 skills"),
        ("environment", "this machine"),
    ]
    assert all(part.size == len(part.text.encode()) > 0 for part in parts)
    assert "How to." not in "".join(part.text for part in parts)


@pytest.mark.req("MD-9")
def test_the_same_files_make_the_same_prompt(land):
    land.write(EVERYTHING)
    assert known(land).prompt_sections("Base.", with_skills=True) == known(land).prompt_sections(
        "Base.", with_skills=True
    )


@pytest.mark.req("EN-10")
def test_without_the_tool_no_skill_is_told_of(land):
    land.write(EVERYTHING)
    assert "skills" not in [part.name for part in known(land).prompt_sections("Base.", with_skills=False)]


@pytest.mark.req("EN-10", "PM-1")
@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({}, ["in-1", "in-2"]),
        ({"skill": "allow"}, ["in-1", "in-2"]),
        ({"skill": "deny"}, []),
        ({"skill": {"in-1": "deny"}}, ["in-2"]),
        ({"skill": {"*": "deny", "in-1": "ask"}}, ["in-1"]),
        ({"*": "deny"}, []),
    ],
)
@pytest.mark.parametrize("config", ["~/.ostler/config.json", ".ostler/config.json"])
def test_denied_skills_are_hidden_whoever_denies_them(land, rules, told, config):
    land.write({f".ostler/skills/in-{n}/SKILL.md": "x" for n in (1, 2)})
    land.write({config: json.dumps({"permission": rules})})
    knowledge = known(land)
    assert [skill.name for skill in knowledge.skills.list_skills()] == told
    assert bool(knowledge.skill_tools()) is bool(told)


@pytest.mark.req("PM-8")
def test_a_project_cannot_show_a_skill_that_the_person_denies(land):
    land.write(
        {
            ".ostler/skills/x/SKILL.md": "x",
            "~/.ostler/config.json": '{"permission": {"skill": "deny"}}',
            ".ostler/config.json": '{"permission": {"skill": "allow"}}',
        }
    )
    assert known(land).skills.list_skills() == []


def test_agents_and_commands(land):
    land.write({".ostler/agents/x.md": "prompt", ".ostler/commands/y.md": "template"})
    knowledge = known(land)
    assert knowledge.agents()["x"].prompt == "prompt"
    assert knowledge.commands()["y"].template == "template"
    assert knowledge.warnings == []


@pytest.mark.req("EN-8")
def test_what_every_request_begins_with_is_small(land, monkeypatch):
    """By default: at most 4,000 tokens of about four bytes each, tools and all."""
    monkeypatch.setenv("HOME", str(land.home))
    settings = land.settings()
    tools = [tool.spec for tool in builtin_tools(settings)]
    offered = [{"name": tool.name, "description": tool.description, "parameters": tool.schema} for tool in tools]
    size = len(join_sections(prompt_sections(str(land.work), settings, tools)).encode()) + len(
        msgspec.json.encode(offered)
    )
    assert size / 4 <= 4000


@pytest.mark.req("EN-8")
def test_for_a_small_window_it_is_smaller_still(land, monkeypatch):
    """At most 2,500 tokens, of bytes as few as any tokenizer makes of one; tasks and all where they fit."""
    monkeypatch.setenv("HOME", str(land.home))
    settings = land.settings()
    tools = [tool.spec for tool in (*builtin_tools(settings), TaskTool({"general": "Works by itself."}))]
    parts = prompt_sections(str(land.work), settings, tools)
    whole, small = (fixed_size(build_prefix(join_sections(parts), parts, tools, window)) for window in (200_000, 8192))
    assert whole / 3.3 <= 4000
    assert small / 3.0 <= 2500
    assert small < whole


@pytest.mark.req("EN-14")
def test_the_prompt_asks_for_the_users_language():
    assert "user's language" in base_prompt()


def test_the_parts_are_what_the_prompt_is_made_of(land, monkeypatch):
    monkeypatch.setenv("HOME", str(land.home))
    land.write(EVERYTHING)
    settings = land.settings()
    parts = prompt_sections(str(land.work), settings)
    assert join_sections(parts) == "\n\n".join(part.text for part in parts)


CHEAP = """
import sys
from ostler.app.engine import join_sections, prompt_sections
from ostler.settings.load import load
from pathlib import Path
settings = load(Path(sys.argv[1]), {"HOME": sys.argv[2]})
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event in ("open", "os.scandir") else None)
join_sections(prompt_sections(sys.argv[1], settings))
seen = {"yaml", "re2", "ostler.knowledge.skills", "ostler.text.sanitise"} & set(sys.modules)
print(len(opened), *sorted(seen))
"""


def test_a_folder_without_such_files_costs_next_to_nothing(land):
    done = subprocess.run(
        [sys.executable, "-c", CHEAP, land.work, land.home], capture_output=True, text=True, check=True, env=land.env
    )
    opened, *modules = done.stdout.split()
    assert modules == []
    assert int(opened) <= 10, "the prompt's own file, the jail, and three names in the home"
