"""A tool is added with two files: its `.py` and its `.md`, whose header declares it."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ostler

SOURCE = Path(ostler.__file__).parent
TOOL = """
import msgspec
from ostler.core.permission import Permission
from ostler.core.tools import ToolResult
from ostler.tools.base_tool import BaseTool
from ostler.tools.path_needs import {needs}


class Params(msgspec.Struct):
    path: str


class NewTool(BaseTool[Params]):
    name = "{name}"
    params = Params

    async def permission(self, params, workspace):
        place, needs = {needs}("{name}", params.path, workspace)
        return Permission("{name}", needs)

    async def run(self, params, context):
        return ToolResult("", "ok", "{name} ran")
"""
MARKDOWN = """---
kind: {kind}
changes: {changes}
aliases: other_{name}
path = PATH
---
Handle a file.
"""


@pytest.fixture
def package(tmp_path):
    """Return a folder with this package plus two tools: `count_words`, which reads, and `append`, which edits."""
    package = tmp_path / "lib" / "ostler"
    (package / "tools").mkdir(parents=True)
    for entry in SOURCE.iterdir():
        if entry.name not in ("tools", "__pycache__"):
            (package / entry.name).symlink_to(entry)
    for entry in (SOURCE / "tools").iterdir():
        if entry.name != "__pycache__":
            (package / "tools" / entry.name).symlink_to(entry)
    for name, kind, changes, needs in (
        ("count_words", "read", "nothing", "read_needs"),
        ("append", "edit", "files", "write_needs"),
    ):
        (package / "tools" / f"{name}.py").write_text(TOOL.format(name=name, needs=needs))
        (package / "tools" / f"{name}.md").write_text(MARKDOWN.format(name=name, kind=kind, changes=changes))
    return package.parent


def run(package, folder, *args):
    env = {"HOME": str(folder), "PATH": os.environ["PATH"], "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "ostler", *args]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL
    )


def call(package, folder, tool, *flags):
    done = run(package, folder, "tool", "call", tool, json.dumps({"file_path": "a.txt"}), *flags)
    return json.loads(done.stdout)["status"] if done.stdout else done.stderr


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.txt").write_text("one two\n")
    return tmp_path / "work"


@pytest.mark.req("TL-3")
def test_tool_is_added_with_two_files(package, folder):
    listed = run(package, folder, "tool", "list").stdout
    assert "count_words  Handle a file" in listed
    assert call(package, folder, "count_words") == "ok"
    assert call(package, folder, "other_count_words") == "ok"
    assert call(package, folder, "append") == "denied"
    assert call(package, folder, "append", "--write") == "ok"
    assert call(package, folder, "append", "--allow", "append") == "ok"
    assert "there is no tool" in call(package, folder, "append", "--allow", "appendd")


@pytest.mark.req("TL-3", "EN-3")
def test_plan_agent_and_modes_follow_the_declaration(package, folder):
    code = """
from ostler.knowledge.builtin_agents import READ_ONLY_RULES, NO_WRITE_RULES
from ostler.policy.permission_rules import last_match
from ostler.policy.profiles import MODES
from ostler.core.permission import Need
rules = {"plan": NO_WRITE_RULES, "explore": READ_ONLY_RULES, "accept-edits": MODES["accept-edits"].allows}
for name, layer in rules.items():
    found = [last_match(layer, Need(tool, "a.txt")) for tool in ("count_words", "append")]
    print(name, *(rule.action if rule else "none" for rule in found))
"""
    env = {"HOME": str(folder), "PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=env, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["plan allow deny", "explore allow deny", "accept-edits none allow"], done.stderr


def test_declarations_are_read_from_a_zip_file(tmp_path):
    with zipfile.ZipFile(tmp_path / "lib.zip", "w") as archive:
        for path in [SOURCE / "__init__.py", *SOURCE.glob("core/*.py"), *SOURCE.glob("tools/*.md")]:
            archive.write(path, Path("ostler") / path.relative_to(SOURCE))
    code = """
import ostler
from ostler.core.tool_declarations import tool_declarations
print(ostler.__file__, len(tool_declarations()), tool_declarations()["read"].kind)
"""
    env = {"PYTHONPATH": os.pathsep.join([str(tmp_path / "lib.zip"), *sys.path])}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout.split() == [
        str(tmp_path / "lib.zip/ostler/__init__.py"),
        str(len(list(SOURCE.glob("tools/*.md")))),
        "read",
    ], done.stderr
