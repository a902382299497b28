"""The sections of a session's prompt: content, order, size and cost."""

import json
import subprocess
import sys

import msgspec
import pytest

from ostler.app.engine import join_sections, prompt_sections
from ostler.app.project import Project
from ostler.app.tool_host import builtin_tools
from ostler.backends.engine.request_prefix import build_prefix, fixed_size
from ostler.core.package_data import read_text
from ostler.knowledge.project_knowledge import ProjectKnowledge
from ostler.tools.task import TaskTool

FILES = {
    "~/.ostler/AGENTS.md": "Use tabs.",
    "AGENTS.md": "Use spaces.",
    "docs/style.md": "Short names.",
    ".ostler/skills/pdf/SKILL.md": "---\ndescription: Reads PDF files.\n---\nHow to.",
    ".ostler/config.json": json.dumps({"instructions": ["docs/*.md"]}),
    ".git/HEAD": "ref: refs/heads/main\n",
}


def load_knowledge(folders):
    return ProjectKnowledge(str(folders.work), folders.settings(), folders.env)


@pytest.mark.req("EN-7")
def test_order_of_sections(folders):
    folders.write(FILES)
    sections = load_knowledge(folders).prompt_sections("Base.", with_skills=True)
    assert [(section.name, section.origin) for section in sections] == [
        ("system prompt", "Ostler"),
        ("global rules", "~/.ostler/AGENTS.md"),
        ("project rules", "AGENTS.md"),
        ("instructions", "docs/style.md"),
        ("skills", "1 skills"),
        ("environment", "this machine"),
    ]
    assert all(section.size == len(section.text.encode()) > 0 for section in sections)
    assert "How to." not in "".join(section.text for section in sections)


@pytest.mark.req("MD-9")
def test_same_files_make_the_same_prompt(folders):
    folders.write(FILES)
    assert load_knowledge(folders).prompt_sections("Base.", with_skills=True) == load_knowledge(
        folders
    ).prompt_sections("Base.", with_skills=True)


@pytest.mark.req("EN-10")
def test_skills_are_not_listed_without_the_tool(folders):
    folders.write(FILES)
    assert "skills" not in [
        section.name for section in load_knowledge(folders).prompt_sections("Base.", with_skills=False)
    ]


@pytest.mark.req("EN-10", "PM-1")
@pytest.mark.parametrize(
    ("rules", "listed"),
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
def test_denied_skills_are_hidden(folders, rules, listed, config):
    folders.write({f".ostler/skills/in-{n}/SKILL.md": "x" for n in (1, 2)})
    folders.write({config: json.dumps({"permission": rules})})
    knowledge = load_knowledge(folders)
    assert [skill.name for skill in knowledge.skills.list_skills()] == listed
    assert knowledge.has_skills() is bool(listed)


@pytest.mark.req("PM-8")
def test_project_cannot_show_a_skill_that_the_user_denies(folders):
    folders.write(
        {
            ".ostler/skills/x/SKILL.md": "x",
            "~/.ostler/config.json": '{"permission": {"skill": "deny"}}',
            ".ostler/config.json": '{"permission": {"skill": "allow"}}',
        }
    )
    assert load_knowledge(folders).skills.list_skills() == []


def test_agents_and_commands(folders):
    folders.write({".ostler/agents/x.md": "prompt", ".ostler/commands/y.md": "template"})
    knowledge = load_knowledge(folders)
    assert knowledge.agents["x"].prompt == "prompt"
    assert knowledge.commands()["y"].template == "template"
    assert knowledge.warnings == []


@pytest.mark.req("EN-8")
def test_request_prefix_is_small(folders, monkeypatch):
    """With default settings at most 4,000 tokens of about four bytes each, including tools."""
    monkeypatch.setenv("HOME", str(folders.home))
    settings = folders.settings()
    tools = [tool.spec for tool in builtin_tools(settings)]
    schemas = [{"name": tool.name, "description": tool.description, "parameters": tool.schema} for tool in tools]
    size = len(join_sections(prompt_sections(Project.with_settings(folders.work, settings), tools)).encode()) + len(
        msgspec.json.encode(schemas)
    )
    assert size / 4 <= 4000


@pytest.mark.req("EN-8")
def test_request_prefix_is_smaller_for_a_small_window(folders, monkeypatch):
    """At most 2,500 tokens of three bytes each, including tools."""
    monkeypatch.setenv("HOME", str(folders.home))
    settings = folders.settings()
    tools = [tool.spec for tool in (*builtin_tools(settings), TaskTool({"general": "Works by itself."}))]
    sections = prompt_sections(Project.with_settings(folders.work, settings), tools)
    full, small = (
        fixed_size(build_prefix(join_sections(sections), sections, tools, window)) for window in (200_000, 8192)
    )
    assert full / 3.3 <= 4000
    assert small / 3.0 <= 2500
    assert small < full


@pytest.mark.req("EN-14")
def test_prompt_asks_for_the_users_language():
    assert "user's language" in read_text("backends/engine/system.md")


def test_prompt_consists_of_its_sections(folders, monkeypatch):
    monkeypatch.setenv("HOME", str(folders.home))
    folders.write(FILES)
    settings = folders.settings()
    sections = prompt_sections(Project.with_settings(folders.work, settings))
    assert join_sections(sections) == "\n\n".join(section.text for section in sections)


SCRIPT = """
import sys
from ostler.app.engine import join_sections, prompt_sections
from ostler.app.project import Project
from ostler.settings.load import load
from pathlib import Path
project = Project.with_settings(Path(sys.argv[1]), load(Path(sys.argv[1]), {"HOME": sys.argv[2]}))
opened = []
sys.addaudithook(lambda event, args: opened.append(args[0]) if event in ("open", "os.scandir") else None)
join_sections(prompt_sections(project))
imported = {"yaml", "re2", "ostler.knowledge.skills", "ostler.text.sanitise"} & set(sys.modules)
print(len(opened), *sorted(imported))
"""


def test_folder_without_files_needs_few_reads(folders):
    process = subprocess.run(
        [sys.executable, "-c", SCRIPT, folders.work, folders.home],
        capture_output=True,
        text=True,
        check=True,
        env=folders.env,
    )
    opened, *modules = process.stdout.split()
    assert modules == []
    assert int(opened) <= 10, "the prompt's own file, the jail, and three names in the home"
