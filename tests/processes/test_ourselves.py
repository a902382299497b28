"""A part of Ostler as a child process, from a folder or from the one file it was delivered as."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ostler.processes import ourselves

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
    monkeypatch.setattr(ourselves, "SOURCE", str(source))
    assert printed(ourselves.child("entry:main", "a b", "$c")) == "entry a b $c False\n"
    assert printed(ourselves.child("entry:main", packages=True)) == "entry True\n"


def test_every_child_of_ours_is_started_that_way():
    source = Path(ourselves.SOURCE) / "ostler"
    begun = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if 'sys.executable, "-I"' in path.read_text("utf-8")
    }
    assert begun <= {"processes/ourselves.py", "processes/proving.py"}, "one that runs none of our code may sleep"
    assert sys.executable in ourselves.child("entry:main")
