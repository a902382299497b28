"""Table of the built-in slash commands: name, description, argument, aliases."""

from typing import Literal

import msgspec

ArgumentKind = Literal[
    "", "models", "agents", "sessions", "turns", "files", "themes", "commands", "words", "modes", "thinking", "profile"
]


class CommandSpec(msgspec.Struct, frozen=True):
    """A built-in command. `argument` is the kind of its argument, `hint` its placeholder in the help."""

    description: str
    argument: ArgumentKind = ""
    hint: str = ""


COMMANDS: dict[str, CommandSpec] = {
    "help": CommandSpec("list the commands, or explain one", "commands", "[command]"),
    "new": CommandSpec("start a new session"),
    "sessions": CommandSpec("list the sessions of this folder, newest first, or search them", "words", "[words]"),
    "resume": CommandSpec("resume a session (default: the previous one)", "sessions", "[session]"),
    "fork": CommandSpec("continue in a copy of this session, complete or up to a prompt", "turns", "[number]"),
    "title": CommandSpec("show or set the title of this session", "words", "words"),
    "undo": CommandSpec("undo the last prompt, including its file changes"),
    "redo": CommandSpec("redo what was undone last"),
    "revert": CommandSpec("go back to before a prompt, including files, or list the prompts", "turns", "[number]"),
    "compact": CommandSpec("replace the history with a summary now (also /summarize)"),
    "uncompact": CommandSpec("undo the last summary: the model gets the full conversation again"),
    "context": CommandSpec("show how full the context is"),
    "status": CommandSpec("show the session, model, context and sandbox"),
    "cost": CommandSpec("show the tokens and the cost so far"),
    "models": CommandSpec("list the models of your settings and the endpoint, or switch to one", "models", "[model]"),
    "agents": CommandSpec("list the agents, or switch to one", "agents", "[agent]"),
    "mode": CommandSpec(
        "list or set the modes of an ACP agent; otherwise the same as /agents (plan is read-only)", "modes", "[mode]"
    ),
    "thinking": CommandSpec("show or set how much the model reasons before it answers", "thinking", "[level]"),
    "profile": CommandSpec("show or set when you are asked: paranoid, balanced or god_mode", "profile", "[profile]"),
    "todo": CommandSpec("show the todo list"),
    "skills": CommandSpec("list the skills the model can load"),
    "mcp": CommandSpec(
        "show the MCP servers and their errors, or restart, disable or enable one",
        "words",
        "[restart|disable|enable NAME]",
    ),
    "permissions": CommandSpec("list the rules you added in this session, or revoke one", "", "[number]"),
    "diff": CommandSpec("show the changes since the last commit", "files", "[path]"),
    "memory": CommandSpec("edit the rules for this folder (AGENTS.md)"),
    "init": CommandSpec("let the model write an AGENTS.md for this folder", "words", "[words]"),
    "export": CommandSpec("write this session to a file (.md, .html or .json), without secrets", "files", "[file]"),
    "doctor": CommandSpec("check this machine and show what is missing"),
    "details": CommandSpec("show tool calls in full, or shortened again (also Ctrl-O)"),
    "theme": CommandSpec("list the colour themes, or switch to one", "themes", "[theme]"),
    "steer": CommandSpec(
        "send text to the running turn; the model sees it before its next step (also Alt-S)", "words", "words"
    ),
    "quit": CommandSpec("quit (also /exit, Ctrl-D)"),
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
COMPLETION_NAMES = (*COMMANDS, "exit", "summarize")
_IDLE_ONLY = frozenset(("new", "resume", "fork", "undo", "redo", "revert"))


def requires_idle(name: str) -> bool:
    """Return whether a command can only run between turns."""
    return ALIASES.get(name, name) in _IDLE_ONLY
