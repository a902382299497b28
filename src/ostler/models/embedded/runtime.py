"""The library that computes the embedded model: found in Ostler's own environment, else in a folder of its own."""

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
    """The folder to import it from; None where there is none."""
    from importlib.util import find_spec

    spec = find_spec(_MODULE)
    if spec is not None and spec.origin:
        return str(Path(spec.origin).parents[1])
    own = _runtime_dir(folder)
    return str(own) if (own / _MODULE).is_dir() else None


async def install_runtime(folder: Path, pip: Pip) -> str:
    """Fetch it, pinned and hashed, into a folder whose name changes with the lock; older ones go."""
    own = _runtime_dir(folder)
    fresh = own.with_suffix(".new")
    shutil.rmtree(fresh, ignore_errors=True)
    options = ["--no-deps", "--no-cache-dir", "--no-compile", "--require-hashes", "--only-binary", ":all:"]
    ran = await pip.run("install", "--quiet", *options, "--target", str(fresh), "-r", str(LOCK_FILE))
    if ran.exit_code != 0:
        shutil.rmtree(fresh, ignore_errors=True)
        raise _platform_error(explain_failure(ran, f"the library {_MODULE}"), ran.stderr)
    for old in folder.glob("runtime-*"):
        if old != fresh:
            shutil.rmtree(old, ignore_errors=True)
    fresh.rename(own)
    return str(own)


def _runtime_dir(folder: Path) -> Path:
    return folder / f"runtime-{sha256(LOCK_FILE.read_bytes()).hexdigest()[:8]}"


def _platform_error(error: BackendError, stderr: str) -> BackendError:
    if error.fault.code != "fetch" or "No matching distribution" not in stderr:
        return error
    machine = (
        f"{platform.system()} on {platform.machine()} with Python {sys.version_info.major}.{sys.version_info.minor}"
    )
    return BackendError(
        f"pip finds no ready-made {_MODULE} for {machine}, so no model can be embedded here",
        code="platform",
        hint="look at pip's index and network, or run a model server such as Ollama or llama.cpp: Ostler finds it",
    )
