"""Starting a part of Ostler as a child process, from a folder or a single file."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ostler.processes import child_python

ENTRY = 'import sys\n\ndef main(*args):\n    print(__name__, *args, "site" in sys.modules)\n'


def output_of(command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env={}).stdout


@pytest.mark.parametrize("packed", [False, True])
def test_child_is_started_from_own_source(tmp_path, monkeypatch, packed):
    source = tmp_path / ("one file.pyz" if packed else "it's a folder")
    if packed:
        with zipfile.ZipFile(source, "w") as archive:
            archive.writestr("entry.py", ENTRY)
    else:
        source.mkdir()
        (source / "entry.py").write_text(ENTRY)
    monkeypatch.setattr(child_python, "SOURCE", str(source))
    assert output_of(child_python.python_command("entry:main", "a b", "$c")) == "entry a b $c False\n"
    assert output_of(child_python.python_command("entry:main", with_packages=True)) == "entry True\n"


def test_all_children_are_started_this_way():
    source = Path(child_python.SOURCE) / "ostler"
    starters = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if 'sys.executable, "-I"' in path.read_text("utf-8")
    }
    assert starters <= {"processes/child_python.py", "processes/sandbox_selftest.py"}, (
        "the self-test may start a sleeping process that runs no code of ours"
    )
    assert sys.executable in child_python.python_command("entry:main")
