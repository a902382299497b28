"""Attaches the files that a prompt mentions."""

import os
from pathlib import Path
from typing import Protocol

from ostler.core.errors import OstlerError, UsageError
from ostler.core.prompt import EmbeddedResource, ImageContent, PromptContent, ResourceLink
from ostler.core.protocols import ResolvedPath
from ostler.knowledge.mentions import typed_mentions
from ostler.knowledge.prompt_syntax import AGENT_PREFIX
from ostler.text.sanitise import sanitise
from ostler.workspace.local_workspace import LocalWorkspace

URL_PREFIXES = ("https://", "http://")
OUTSIDE = "the path is outside the workspace"
NOT_TYPED = "the mention is pasted, quoted or in code"
SUMMARIZE_FROM, MAX_NAMED = 3, 5
MAX_BYTES = 1024 * 1024  # about what fits a large context window


class MentionedResources(Protocol):
    """Resources that can be mentioned like files, such as those of MCP servers."""

    def is_resource(self, mention: str) -> bool: ...

    async def read(self, mention: str) -> list[PromptContent]: ...


class AttachmentCollector:
    """Collects the content blocks of mentioned files, each file once, and notices for the user."""

    def __init__(
        self,
        cwd: Path,
        *,
        allow_outside: bool,
        approved: bool = False,
        ask_about_outside: bool = False,
        resources: MentionedResources | None = None,
    ) -> None:
        """With `allow_outside` a path that the user typed may be outside the workspace.

        A file that may contain secrets, and with `ask_about_outside` one outside the workspace or on an MCP server,
        is in `questions` unless the user `approved` them. `resources` are those of MCP servers.
        """
        self._resources = resources
        self._cwd = cwd
        self._allow_outside = allow_outside
        self._approved = approved
        self._ask_about_outside = ask_about_outside
        self.questions: list[str] = []
        self.blocks: dict[str, PromptContent] = {}
        self._notices: list[str] = []
        self._missing: dict[str, str] = {}
        self._read_resources: set[str] = set()

    @property
    def notices(self) -> list[str]:
        """A line for each file; three or more missing ones share a line, because pasted code looks like mentions."""
        if len(self._missing) < SUMMARIZE_FROM:
            return [*self._notices, *self._missing.values()]
        listed, more = list(self._missing)[:MAX_NAMED], len(self._missing) - MAX_NAMED
        names = ", ".join(f"@{path}" for path in listed) + (f" and {more} more" if more > 0 else "")
        return [*self._notices, f"not attached, no such file: {names} (sent as plain text)"]

    async def add_mentions(self, text: str, pasted: str = "") -> None:
        """Add the files and links that the text mentions. What the user did not type must be inside the workspace."""
        for _, end, mention, typed in typed_mentions(text, pasted):
            if mention.startswith(URL_PREFIXES):
                self.blocks[mention] = ResourceLink(mention)
            elif not mention.startswith(AGENT_PREFIX):
                await self.add_file(_mentioned_path(text, end, mention), typed=typed)

    async def _add_resource(self, mention: str, resources: MentionedResources, *, typed: bool) -> None:
        """Add a resource of an MCP server, or a notice if it cannot be attached."""
        if mention in self._read_resources:
            return
        self._read_resources.add(mention)
        try:
            if not typed:
                raise UsageError(NOT_TYPED)
            if self._ask_about_outside and not self._approved:
                self.questions.append(f"read {sanitise(mention)[:200]} from an MCP server")
                raise UsageError("it needs your approval")
            blocks = await resources.read(mention)
        except OstlerError as error:
            self._notices.append(f"@{mention} was not attached: {error} (sent as plain text)")
            return
        for number, block in enumerate(blocks):
            self.blocks[f"{mention} {number}"] = block
        size = sum(len(block.text) for block in blocks if isinstance(block, EmbeddedResource))
        images = sum(isinstance(block, ImageContent) for block in blocks)
        self._notices.append(f"attached {mention} ({f'{size:,} characters' if size or not images else 'image'})")

    async def add_file(self, path: str, *, typed: bool) -> None:
        """Add a file or a resource, or a notice if it cannot be attached; the mention then stays plain text."""
        if not path:
            return
        if self._resources and self._resources.is_resource(path):
            await self._add_resource(path, self._resources, typed=typed)
            return
        try:
            resource = await self._read_file(os.path.expanduser(path) if typed else path, typed=typed)
        except OstlerError as error:
            message = f"@{path} was not attached: {error} (sent as plain text)"
            if error.fault.code == "not_found":
                self._missing[path] = message
            else:
                self._notices.append(message)
            return
        name = resource.uri if isinstance(resource, EmbeddedResource) else resource.name
        if name not in self.blocks:
            self.blocks[name] = resource
            self._notices.append(f"attached {name} ({_describe(resource)})")

    async def _read_file(self, path: str, *, typed: bool) -> EmbeddedResource | ImageContent:
        if not typed and path.startswith("~"):
            raise UsageError(f"{NOT_TYPED}, where ~ is not expanded")
        workspace = LocalWorkspace(str(self._cwd))
        try:
            resolved = workspace.resolve(path)
            if not resolved.in_workspace:
                if typed and self._allow_outside and not os.path.isabs(path):
                    raise UsageError(OUTSIDE, hint=f"use the absolute path: @{resolved.absolute}")
                if not (typed and self._allow_outside):
                    raise (
                        UsageError(OUTSIDE, hint="--yolo allows it")
                        if typed
                        else UsageError(f"{OUTSIDE}, and {NOT_TYPED}")
                    )
                workspace.grant_read(resolved.absolute)
            self._require_approval(path, resolved, typed=typed)
            if os.path.isdir(resolved.absolute):
                names = [f"{e.name}{'/' * (e.kind == 'directory')}" for e in await workspace.entries(path)]
                return EmbeddedResource(resolved.display_path, "\n".join(names))
            from ostler.workspace.images import read_image  # imported late: most prompts mention no file

            if found := await read_image(path, workspace):
                return found[0]
            if (size := _file_size(resolved.absolute)) > MAX_BYTES:
                raise UsageError(f"the file is too large ({size:,} bytes)", hint="the agent can read parts of it")
            return EmbeddedResource(resolved.display_path, (await workspace.read_text(path)).text)
        finally:
            workspace.close()

    def _require_approval(self, path: str, resolved: ResolvedPath, *, typed: bool) -> None:
        """Raise `UsageError` for a file that needs approval and does not have it; one that was typed is a question."""
        reason = ""
        if _is_sensitive(path, resolved.absolute):
            reason = "may contain secrets"
        elif self._ask_about_outside and not resolved.in_workspace:
            reason = "is outside the workspace"
        if not reason or (typed and self._approved):
            return
        if typed and os.path.exists(resolved.absolute):
            self.questions.append(f"attach {path}, which {reason}")
        raise UsageError(f"it {reason}, so it needs your approval")


def _is_sensitive(path: str, absolute: str) -> bool:
    """Return whether a file probably contains secrets, judged by its names and folders, also behind symlinks."""
    from ostler.text.redact import is_sensitive_file
    from ostler.workspace.home_paths import CREDENTIAL_PATHS

    real = os.path.realpath(absolute)
    folders = [os.path.realpath(os.path.expanduser(f"~/{name}")) for name in CREDENTIAL_PATHS if name != ".ostler"]
    return any(map(is_sensitive_file, (path, absolute, real))) or any(
        f"{real}/".startswith(f"{folder}/") for folder in folders
    )


def _describe(resource: EmbeddedResource | ImageContent) -> str:
    if isinstance(resource, ImageContent):
        return "image"
    lines = len(resource.text.splitlines())
    return f"{lines:,} line{'s' * (lines != 1)}"


def _file_size(path: str) -> int:
    """Return the size, or 0 if there is no such file; reading it raises the error."""
    try:
        return os.stat(path).st_size
    except OSError:
        return 0


def _mentioned_path(text: str, end: int, mention: str) -> str:
    """Return the path of a mention, without `file:`, which a quoted name may follow."""
    if mention != "file" or text[end : end + 1] != ":":
        return mention.removeprefix("file:")
    quote, rest = text[end + 1 : end + 2], text[end + 2 :]
    return rest.partition(quote)[0].partition("\n")[0] if quote in ("'", '"') else ""
