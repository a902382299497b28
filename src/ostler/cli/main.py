"""The table of commands, the help made from it, and the one place where errors become a sentence and a status."""

import sys

COMMANDS = {
    "chat": ("ostler.cli.chat", "work on this folder at a prompt; also what `ostler` alone does in a terminal"),
    "run": ("ostler.cli.run", "work on one prompt without a person, for scripts and pipes"),
    "demo": ("ostler.cli.demo", "watch it find and fix a failing test in a scratch folder"),
    "tool": ("ostler.cli.tool", "list the tools, show one, or call one without a model"),
    "model": ("ostler.cli.model", "install, list or remove a small model of Ostler's own"),
    "sessions": ("ostler.cli.sessions", "find, show, export, fork, rename, mend or delete what was kept"),
    "acp": ("ostler.cli.acp", "the Agent Client Protocol: be the agent of an editor, drive any other, test one"),
    "config": ("ostler.cli.config", "show, check or describe the settings"),
    "permissions": ("ostler.cli.permissions", "say what would be allowed, asked or denied, and why"),
    "undo": ("ostler.cli.undo", "take back what the last turn changed, whatever changed it"),
    "redo": ("ostler.cli.redo", "do again what was taken back last"),
    "trust": ("ostler.cli.trust", "let this project's own settings widen and run, as they are now"),
    "redact": ("ostler.cli.redact", "copy a pipe without its secrets"),
    "xnl": ("ostler.cli.xnl", "look at text in XNL: its tree, its form, the calls in it"),
    "doctor": ("ostler.cli.doctor", "look at this machine and say what is missing"),
}

GC_THRESHOLD = 50_000  # a start makes that many objects to stay; looking for garbage each 700 finds none

HELP = """\
usage: ostler [--version] [--help] COMMAND …
       ostler [options of chat]

A harness for coding agents: any model, any backend, any face; you keep the last word.

commands:
{commands}

`ostler COMMAND --help` tells more of each.
"""


def help_text() -> str:
    """What `--help` prints."""
    return HELP.format(commands="\n".join(f"  {name:<12} {told}" for name, (_, told) in COMMANDS.items()))


def dispatch(arguments: list[str]) -> int:
    """Run a command; its status is ours."""
    if not arguments and _in_terminal():
        return _run_command("chat", [])
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        sys.stdout.write(help_text())
        return 0
    if arguments[0].startswith("-"):
        return _run_command("chat", arguments)
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        return _report_unknown(name)
    return _run_command(name, rest)


def _in_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()


def _report_unknown(name: str) -> int:
    from ostler.text.closest_name import closest_name

    near = closest_name(name, COMMANDS)
    hint = f"; did you mean {near}?" if near else "; `ostler --help` lists them"
    sys.stderr.write(f"ostler: there is no command {name!r}{hint}\n")
    return 2


def _run_command(name: str, rest: list[str]) -> int:
    import gc
    from importlib import import_module

    from ostler.core.errors import OstlerError

    gc.set_threshold(GC_THRESHOLD)
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]  # a terminal that cannot show it gets a mark
    try:
        status = import_module(COMMANDS[name][0]).main(rest)
        sys.stdout.flush()
        return int(status)
    except OstlerError as error:
        from ostler.text.sanitise import sanitise

        sys.stderr.write(f"ostler: {sanitise(str(error))}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        _silence_stdout()  # `ostler … | head`: whoever read has gone, and that is no error
        return 0
    except OSError as error:
        if error.filename is not None:
            raise
        _silence_stdout()
        sys.stderr.write(f"ostler: cannot go on: {error.strerror}\n")
        return 1


def _silence_stdout() -> None:
    """Nothing more can be written, and nothing may be said about that at exit."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
