"""Puts other people's programs where the interop tests find them; a test is skipped where that cannot be done."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest


def root_folder() -> Path:
    """The folder that `OSTLER_INTEROP` names: nobody's machine is filled with agents unasked."""
    named = os.environ.get("OSTLER_INTEROP")
    if not named:
        pytest.skip("set OSTLER_INTEROP to a folder where other people's agents may be installed")
    return Path(named)


def installed_package(name: str, package: str, file: str) -> Path:
    """A file of an npm package in a folder of its own, installed if it is not there."""
    folder = root_folder() / name
    found = folder / "node_modules" / file
    if found.exists():
        return found
    if shutil.which("npm") is None:
        pytest.skip("there is no npm")
    folder.mkdir(parents=True, exist_ok=True)
    command = ["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", package]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=500)
    if done.returncode or not found.exists():
        pytest.skip(f"npm cannot install {package}: {done.stderr[-300:]}")
    return found
