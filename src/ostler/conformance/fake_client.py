"""Fake file and terminal services offered to the agent under test."""

import os
from typing import Any

from ostler.wire.acp import NOT_FOUND
from ostler.wire.jsonrpc import INTERNAL_ERROR, METHOD_NOT_FOUND, Params, RpcError

CAPABILITIES = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
TERMINAL_OUTPUT = "comply\n"


class FakeClientServices:
    """Serves files of a temporary folder and fake terminals, and records all requests."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.requests: list[tuple[str, Params]] = []
        self.rejects_writes = False
        self.terminals: set[str] = set()

    def requested_paths(self) -> list[str]:
        return [str(params.get("path")) for method, params in self.requests if method.startswith("fs/")]

    def write_count(self) -> int:
        return sum(method == "fs/write_text_file" for method, _ in self.requests)

    def terminal_count(self) -> int:
        return sum(method == "terminal/create" for method, _ in self.requests)

    async def serve(self, method: str, params: Params) -> dict[str, Any]:
        self.requests.append((method, params))
        match method:
            case "fs/read_text_file":
                return {"content": self._read(str(params.get("path")))}
            case "fs/write_text_file":
                self._write(str(params.get("path")), str(params.get("content")))
                return {}
            case "terminal/create":
                name = f"comply-{self.terminal_count()}"
                self.terminals.add(name)
                return {"terminalId": name}
            case "terminal/output":
                return {"output": TERMINAL_OUTPUT, "truncated": False, "exitStatus": {"exitCode": 0}}
            case "terminal/wait_for_exit":
                return {"exitCode": 0}
            case "terminal/release":
                self.terminals.discard(str(params.get("terminalId")))
                return {}
            case "terminal/kill":
                return {}
            case _:
                raise RpcError(METHOD_NOT_FOUND, "Method not found")

    def _read(self, path: str) -> str:
        try:
            with open(self._resolve_inside(path), encoding="utf-8", newline="") as file:
                return file.read()
        except (OSError, UnicodeDecodeError):
            raise RpcError(NOT_FOUND, "Resource not found") from None

    def _write(self, path: str, content: str) -> None:
        if self.rejects_writes:
            raise RpcError(INTERNAL_ERROR, "cannot write this file")
        try:
            with open(self._resolve_inside(path), "w", encoding="utf-8", newline="") as file:
                file.write(content)
        except OSError as error:
            raise RpcError(INTERNAL_ERROR, str(error.strerror)) from None

    def _resolve_inside(self, path: str) -> str:
        """Return the real path. Raises `RpcError` if it is outside the temporary folder."""
        resolved = os.path.realpath(path)
        if not resolved.startswith(self._folder.rstrip("/") + "/"):
            raise RpcError(INTERNAL_ERROR, "this path is outside the working directory")
        return resolved
