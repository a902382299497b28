"""Defines the command table, prints `--help`, dispatches to a command and turns errors into exit statuses."""

import sys

# Name: (module, or module:function if it is not `main`; description).
COMMANDS = {
    "chat": ("ostler.cli.chat", "start an interactive session (default in a terminal)"),
    "tui": ("ostler.cli.tui", "start the full-screen client"),
    "worktree": ("ostler.cli.worktree", "list or remove the git worktrees of sessions"),
    "run": ("ostler.cli.run", "run one prompt non-interactively, for scripts and pipes"),
    "demo": ("ostler.cli.demo", "watch the agent fix a failing test in a temporary folder"),
    "tool": ("ostler.cli.tool", "list, show or call tools without a model"),
    "model": ("ostler.cli.model", "install, list or remove small embedded models"),
    "sessions": (
        "ostler.cli.sessions",
        "list, show, search, export, import, fork, rename, repair or delete sessions, and show statistics",
    ),
    "acp": ("ostler.cli.acp", "use the Agent Client Protocol: serve an editor, run or test an agent"),
    "zero": ("ostler.cli.zero", "work with an Agent Zero server, and let it use tools of this machine"),
    "mcp": ("ostler.cli.mcp", "list, add, remove or test MCP servers; serve Ostler's tools to MCP clients"),
    "serve": ("ostler.cli.serve", "run the agent loop for clients that run the tools on their own machine"),
    "connect": ("ostler.cli.connect", "chat with a server; the tools run on this machine"),
    "login": ("ostler.cli.login", "store the token of a server, or list the servers"),
    "logout": ("ostler.cli.login:logout", "revoke and delete the token of a server"),
    "config": ("ostler.cli.config", "show or check the settings, print their JSON Schema"),
    "permissions": ("ostler.cli.permissions", "explain permission decisions, list or revoke rules"),
    "undo": ("ostler.cli.undo", "undo the file changes of a turn"),
    "redo": ("ostler.cli.undo:redo", "redo the file changes of an undone turn"),
    "trust": ("ostler.cli.trust", "trust this project's settings, or revoke the trust"),
    "redact": ("ostler.cli.redact", "remove secrets from piped text"),
    "xnl": ("ostler.cli.xnl", "parse or format XNL text, list the tool calls in it"),
    "doctor": ("ostler.cli.doctor", "check this machine and report what is missing"),
}

GC_THRESHOLD = 50_000  # startup creates many long-lived objects; the default of 700 would scan them for nothing

HELP = """\
usage: ostler [--version] [--help] COMMAND …
       ostler [OPTIONS]   (same as `ostler chat [OPTIONS]`)

A coding agent for your terminal, your editor and your scripts:
it works with any model and asks before it changes anything.

commands:
{commands}

Run `ostler COMMAND --help` for the options of a command.
"""


def help_text() -> str:
    return HELP.format(commands="\n".join(f"  {name:<12} {description}" for name, (_, description) in COMMANDS.items()))


def dispatch(arguments: list[str]) -> int:
    """Run the command that the arguments name and return its exit status."""
    if not arguments and _in_terminal():
        return run_main("ostler.cli.chat:default", [])
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        sys.stdout.write(help_text())
        return 0
    if arguments[0].startswith("-"):
        return run_main("ostler.cli.chat:default", arguments)
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        return _report_unknown(name)
    return run_main(COMMANDS[name][0], rest)


def _in_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _report_unknown(name: str) -> int:
    from ostler.text.closest_name import closest_name

    suggestion = closest_name(name, COMMANDS)
    hint = f"; did you mean {suggestion}?" if suggestion else "; see `ostler --help`"
    sys.stderr.write(f"ostler: unknown command {name!r}{hint}\n")
    return 2


def run_main(entry: str, rest: list[str], program: str = "ostler") -> int:
    """Import and call `module:function`, and turn its errors into messages of `program` and an exit status."""
    import gc
    from importlib import import_module

    from ostler.core.errors import OstlerError

    gc.set_threshold(GC_THRESHOLD)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # for terminals without UTF-8
    try:
        module, _, function = entry.partition(":")
        status = getattr(import_module(module), function or "main")(rest)
        sys.stdout.flush()
        return int(status)
    except OstlerError as error:
        from ostler.text.sanitise import sanitise

        sys.stderr.write(f"{program}: {sanitise(str(error))}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _silence_stdout()  # the reader closed the pipe (`ostler … | head`), which is not an error
        return 0
    except (OSError, UnicodeEncodeError) as error:
        message, status = _explain(error, rest)
        if not message:
            raise
        sys.stderr.write(f"{program}: {message}\n")
        return status


def _explain(error: OSError | UnicodeEncodeError, arguments: list[str]) -> tuple[str, int]:
    """Return the message and the exit status of an error that the arguments or the output caused, or no message."""
    import errno

    from ostler.text.sanitise import escape_invisible

    if isinstance(error, UnicodeEncodeError):
        invalid = next((argument for argument in arguments if not _is_unicode(argument)), "")
        return f"an argument is not valid UTF-8: {escape_invisible(invalid)[:200]}" if invalid else "", 2
    if error.errno == errno.ENAMETOOLONG:
        return f"the name of a file or folder is too long: {escape_invisible(str(error.filename))[:200]}…", 2
    if error.filename is not None:
        return "", 1
    _silence_stdout()
    return f"stopped: {error.strerror}", 1


def _is_unicode(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= char <= "\udfff" for char in text)


def _silence_stdout() -> None:
    """Redirect stdout to the null device, so that flushing it at exit does not fail."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
