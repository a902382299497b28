"""The table of our own commands: their names, what they do, and what they take."""

from typing import Literal

import msgspec

ArgumentKind = Literal[
    "", "models", "agents", "sessions", "turns", "files", "themes", "commands", "words", "modes", "thinking", "profile"
]


class CommandSpec(msgspec.Struct, frozen=True):
    """One command; `takes` says what its argument is chosen from."""

    description: str
    argument: ArgumentKind = ""
    hint: str = ""


COMMANDS: dict[str, CommandSpec] = {
    "help": CommandSpec("this list; with a command, what it does", "commands", "[command]"),
    "new": CommandSpec("begin a new session"),
    "sessions": CommandSpec("the sessions here, newest first; with words, those that have them", "words", "[words]"),
    "resume": CommandSpec("go on with an earlier session (alone: the one before this)", "sessions", "[session]"),
    "fork": CommandSpec("go on in a copy of this session, whole or from before a prompt", "turns", "[number]"),
    "title": CommandSpec("give this session a title", "words", "words"),
    "undo": CommandSpec("take back the last prompt: what was said, and what it changed in the files"),
    "redo": CommandSpec("do again what was taken back"),
    "revert": CommandSpec(
        "go back to before a prompt, files and all; alone: the prompts by number", "turns", "[number]"
    ),
    "compact": CommandSpec("make the history shorter now: a summary takes its place (also /summarize)"),
    "uncompact": CommandSpec("take the last summary back: the model is told the conversation itself again"),
    "context": CommandSpec("how full the context is"),
    "status": CommandSpec("the session, the model, the context, the sandbox"),
    "cost": CommandSpec("what was used so far"),
    "models": CommandSpec(
        "the models of your settings and of the endpoint; with one, take it from now on", "models", "[model]"
    ),
    "agents": CommandSpec("the agents; with a name, work with that one from now on", "agents", "[agent]"),
    "mode": CommandSpec(
        "the modes of an ACP agent; else like /agents, of which plan changes nothing", "modes", "[mode]"
    ),
    "thinking": CommandSpec("how much the model reasons before it answers", "thinking", "[level]"),
    "profile": CommandSpec("when you are asked: paranoid, balanced or god_mode", "profile", "[profile]"),
    "todo": CommandSpec("the plan"),
    "skills": CommandSpec("the skills the model can load"),
    "mcp": CommandSpec("the MCP servers"),
    "permissions": CommandSpec("the rules you gave; with a number, take that one back", "", "[number]"),
    "diff": CommandSpec("what differs from the last commit", "files", "[path]"),
    "memory": CommandSpec("edit the rules for this folder (AGENTS.md)"),
    "init": CommandSpec("let the model write an AGENTS.md for this folder", "words", "[words]"),
    "export": CommandSpec("write this session to a file (.md, .html or .json), without secrets", "files", "[file]"),
    "doctor": CommandSpec("what this machine has and lacks"),
    "details": CommandSpec("show calls in full, or in short again (also Ctrl-O)"),
    "theme": CommandSpec("the colours; with a name, take that one", "themes", "[theme]"),
    "steer": CommandSpec("words for the turn that runs, seen before its next step (also Alt-S)", "words", "words"),
    "quit": CommandSpec("leave (also /exit, Ctrl-D)"),
}
ALIASES = {
    "exit": "quit",
    "q": "quit",
    "clear": "new",
    "model": "models",
    "agent": "agents",
    "summarize": "compact",
    "continue": "resume",
    "rename": "title",
    "themes": "theme",
    "todos": "todo",
    "unrevert": "redo",
    "?": "help",
}
COMPLETION_NAMES = (*COMMANDS, "exit", "summarize")  # what is completed: the requirements' names and ours
_IDLE_ONLY = frozenset(("new", "resume", "fork", "undo", "redo", "revert"))


def requires_idle(name: str) -> bool:
    """Whether a command cannot be run while a turn is."""
    return ALIASES.get(name, name) in _IDLE_ONLY
