"""Finds or installs the inference library."""

import platform
import shutil
import sys
from hashlib import sha256
from pathlib import Path

from ostler.core.errors import BackendError
from ostler.models.embedded.pip import Pip, explain_failure

LOCK_FILE = Path(__file__).with_name("runtime.lock")
DOWNLOAD_BYTES = 34_000_000
INSTALLED_BYTES = 150_000_000
_MODULE = "xllamacpp"


def find_runtime(folder: Path) -> str | None:
    """Return the folder to import the library from, or None if it is not installed."""
    from importlib.util import find_spec

    spec = find_spec(_MODULE)
    if spec is not None and spec.origin:
        return str(Path(spec.origin).parents[1])
    installed = _runtime_dir(folder)
    return str(installed) if (installed / _MODULE).is_dir() else None


async def install_runtime(folder: Path, pip: Pip) -> str:
    """Install the locked version into a folder named after the lock file. Older versions are removed."""
    target = _runtime_dir(folder)
    temporary = target.with_suffix(".new")
    shutil.rmtree(temporary, ignore_errors=True)
    options = ["--no-deps", "--no-cache-dir", "--no-compile", "--require-hashes", "--only-binary", ":all:"]
    result = await pip.run("install", "--quiet", *options, "--target", str(temporary), "-r", str(LOCK_FILE))
    if result.exit_code != 0:
        shutil.rmtree(temporary, ignore_errors=True)
        raise _platform_error(explain_failure(result, f"the library {_MODULE}"), result.stderr)
    for old in folder.glob("runtime-*"):
        if old != temporary:
            shutil.rmtree(old, ignore_errors=True)
    temporary.rename(target)
    return str(target)


def _runtime_dir(folder: Path) -> Path:
    return folder / f"runtime-{sha256(LOCK_FILE.read_bytes()).hexdigest()[:8]}"


def _platform_error(error: BackendError, stderr: str) -> BackendError:
    if error.fault.code != "fetch" or "No matching distribution" not in stderr:
        return error
    machine = (
        f"{platform.system()} on {platform.machine()} with Python {sys.version_info.major}.{sys.version_info.minor}"
    )
    return BackendError(
        f"the embedded model is not available: pip found no {_MODULE} wheel for {machine}",
        code="platform",
        hint="check pip's index and network, or run a model server such as Ollama or llama.cpp, which Ostler detects",
    )
