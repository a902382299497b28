"""Flags of `ostler acp run` as plain values."""

import msgspec


class AcpFlags(msgspec.Struct, frozen=True):
    """The parsed flags; empty values are unset. `program` is the name at the start of messages.

    `prompt` was typed. `piped` is appended to it, and its mentions are ordinary text.
    """

    prompt: str
    piped: str = ""
    agent: str = ""
    output: str = "text"
    settings: str = ""
    cwd: str = "."
    write: bool = False
    yolo: bool = False
    policy: str = ""
    list_caps: bool = False
    list_modes: bool = False
    list_commands: bool = False
    list_sessions: bool = False
    delete_session: str = ""
    options: tuple[tuple[str, str], ...] = ()
    resume: str = ""
    fork: bool = False
    save_session: str = ""
    timeout: float | None = None
    directories: tuple[str, ...] = ()
    mcp: tuple[str, ...] = ()
    files: bool = True
    terminal: bool = True
    login: str = ""
    answers: dict[str, str] = {}
    check: bool = False
    fail_on_deny: bool = False
    trust: bool = False
    program: str = "ostler"

    @property
    def text(self) -> str:
        """The whole prompt."""
        return "\n\n".join(filter(None, (self.prompt, self.piped)))
