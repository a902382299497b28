"""A part of Ostler as a child process, from a folder or from the one file it was delivered as."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ostler.processes import child_python

ENTRY = 'import sys\n\ndef main(*words):\n    print(__name__, *words, "site" in sys.modules)\n'


def printed(command):
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env={}).stdout


@pytest.mark.parametrize("packed", [False, True])
def test_it_is_started_from_where_this_one_was_loaded(tmp_path, monkeypatch, packed):
    source = tmp_path / ("one file.pyz" if packed else "it's a folder")
    if packed:
        with zipfile.ZipFile(source, "w") as archive:
            archive.writestr("entry.py", ENTRY)
    else:
        source.mkdir()
        (source / "entry.py").write_text(ENTRY)
    monkeypatch.setattr(child_python, "SOURCE", str(source))
    assert printed(child_python.python_command("entry:main", "a b", "$c")) == "entry a b $c False\n"
    assert printed(child_python.python_command("entry:main", with_packages=True)) == "entry True\n"


def test_every_child_of_ours_is_started_that_way():
    source = Path(child_python.SOURCE) / "ostler"
    begun = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if 'sys.executable, "-I"' in path.read_text("utf-8")
    }
    assert begun <= {"processes/child_python.py", "processes/sandbox_selftest.py"}, (
        "one that runs none of our code may sleep"
    )
    assert sys.executable in child_python.python_command("entry:main")
