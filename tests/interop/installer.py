"""Installs the programs that the interop tests need; tests are skipped if that fails."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def root_folder() -> Path:
    """Return the folder in `OSTLER_INTEROP`; without it, nothing is installed and the test is skipped."""
    named = os.environ.get("OSTLER_INTEROP")
    if not named:
        pytest.skip("set OSTLER_INTEROP to a folder in which agents can be installed")
    return Path(named)


def installed_package(name: str, package: str, file: str) -> Path:
    """Return a file of an npm package, which is installed into its own folder if necessary."""
    folder = root_folder() / name
    found = folder / "node_modules" / file
    if found.exists():
        return found
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", package]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    if done.returncode or not found.exists():
        pytest.skip(f"npm cannot install {package}: {done.stderr[-300:]}")
    return found
