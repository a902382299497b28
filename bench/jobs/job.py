"""Loads the jobs, creates their folders and checks results."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Literal

import msgspec

HERE = Path(__file__).parent
CHECK_SECONDS = 20
Half = Literal["tuning", "held_out"]

_AREAS = ("billing", "catalogue", "export", "imports", "layout", "queue", "search", "storage")
_FILLER = '''"""Part {number} of the {area} module."""


class {title}{number}:
    def __init__(self, name):
        self.name = name

    def describe(self):
        return f"{area} {{self.name}}"


def load_{area}_{number}(path):
    with open(path) as file:
        return [{title}{number}(line.strip()) for line in file]
'''


class Job(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One job; see the package's docstring."""

    name: str
    kind: Literal["question", "fix", "addition", "rename", "data"]
    prompt: str
    files: dict[str, str]
    filler: int = 0
    answer: tuple[str, ...] = ()
    answer_not: tuple[str, ...] = ()
    script: str = ""
    keeps: tuple[str, ...] = ()

    @property
    def names_file(self) -> bool:
        """Whether the prompt names a file."""
        return bool(self.named_files) or bool(re.search(r"\b\w+\.(py|js|json|csv|yml|toml)\b", self.prompt))

    @property
    def named_files(self) -> list[str]:
        """The files of the folder that the prompt names."""
        return [path for path in self.files if path in self.prompt]

    def create(self, folder: Path) -> None:
        """Create the job's files."""
        contents = {path: text.lstrip("\n") for path, text in self.files.items()}
        for path, text in {**_filler_files(self.filler), **contents}.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)

    def failure(self, folder: Path, answer: str) -> str:
        """Return why the job is not solved, or an empty string."""
        original = {**_filler_files(self.filler), **{path: text.lstrip("\n") for path, text in self.files.items()}}
        keeps = list(original) if self.kind == "question" else [*self.keeps, *_filler_files(self.filler)]
        for path in keeps:
            if not (folder / path).is_file() or (folder / path).read_text() != original[path]:
                return f"{path} was changed"
        if self.kind == "question" and (extra := _new_files(folder, original)):
            return f"{extra[0]} was written"
        if missing := [pattern for pattern in self.answer if not re.search(pattern, answer)]:
            return f"the answer lacks {missing[0]}"
        if wrong := [pattern for pattern in self.answer_not if re.search(pattern, answer)]:
            return f"the answer has {wrong[0]}"
        return _run_script(self.script, folder) if self.script else ""


def load_jobs(half: Half) -> list[Job]:
    """Return the jobs of one half."""
    document = tomllib.loads((HERE / f"{half}.toml").read_text())
    return msgspec.convert(document["job"], list[Job])


def _filler_files(count: int) -> dict[str, str]:
    files = {}
    for number in range(count):
        area = _AREAS[number % len(_AREAS)]
        files[f"{area}/part_{number:03}.py"] = _FILLER.format(number=number, area=area, title=area.title())
    return files


def _new_files(folder: Path, original: dict[str, str]) -> list[str]:
    """Return the files that the job did not create, without caches and the files of tools."""
    paths = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    return [
        str(path)
        for path in paths
        if str(path) not in original and not path.parts[0].startswith((".git", ".aider", "__pycache__"))
    ]


def _run_script(script: str, folder: Path) -> str:
    argv = [sys.executable, "-B", "-c", script]
    try:
        done = subprocess.run(argv, cwd=folder, capture_output=True, text=True, timeout=CHECK_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "the check did not end"
    return (done.stderr.strip().splitlines() or ["the check failed"])[-1][:160] if done.returncode else ""
