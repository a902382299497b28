"""Evaluates the scripts that package managers and `just` take from a file of the project."""

import os.path
import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from ostler.policy.danger_tables import split_names
from ostler.policy.shell import unknown_programs
from ostler.policy.shell.command_call import NO_STDIN, CommandCall, CommandHandler
from ostler.policy.shell.command_evaluator import shell_quote
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord, literal_words
from ostler.policy.shell.file_changes import UNREAD_TASKS
from ostler.policy.shell.option_parser import parse_options
from ostler.policy.shell.shell_state import ShellState

_FOLDER_OPTIONS = ("prefix", "cwd", "dir")
_WORKSPACE_OPTIONS = ("w", "workspace", "workspaces", "r", "recursive", "filter", "F")
_PROGRAM_OPTION = re.compile(r"--(?:script[-_]?s[hel]*|shell|git|editor|viewer|browser)(=.+)?", re.DOTALL)
_SCRIPT_SHELL_SETTING = re.compile(r"^\s*script[-_]shell\s*=\s*[\"']?([^\s\"']+)", re.MULTILINE)
_RUN_VERBS = frozenset({"run", "run-script", "rum", "urn"})
_SCRIPT_VERBS = {"t": "test", "tst": "test", "it": "test", "test": "test", "start": "start", "stop": "stop"}
_INSTALL_VERBS = frozenset(split_names("install i in ins ci add clean-install install-test it up update link"))
_INSTALL_SCRIPTS = split_names("preinstall install postinstall prepublish preprepare prepare postprepare")
_CREATED = "runs a script that the same command line creates"
_UNREADABLE = "runs a script that cannot be analysed"
_SETTINGS = "its settings file may name a shell"
_OTHER_PACKAGES = "it runs scripts of other packages"


class TaskFile(msgspec.Struct):
    """A file with tasks: its path, its text, and the shell in its folder."""

    path: str
    text: str
    shell: ShellState


def _find_file(call: CommandCall, names: Sequence[str], folder: ExpandedWord | None) -> TaskFile | str | None:
    """Return the nearest of the files, in the folder or above it. Return a reason if its text is not known."""
    shell = call.shell.fork()
    if folder is not None:
        shell.change_folder(folder.text if folder.exact else UNKNOWN_TEXT, exists=True)
    for place in shell.cwd:
        for above in _with_parents(place):
            for name in names:
                path = os.path.join(above, name)
                written = call.evaluator.written_files
                try:
                    text = written[path] if path in written else call.evaluator.read_script(path)
                except (OSError, ValueError):
                    continue
                if text is None:
                    return _CREATED if path in written else _UNREADABLE
                shell.cwd, shell.in_project_environment = (above,), True
                return TaskFile(path, text, shell)
    return None


def _with_parents(folder: str) -> Iterator[str]:
    yield folder
    while folder != os.path.dirname(folder):
        folder = os.path.dirname(folder)
        yield folder


# package.json


def _package_manager(call: CommandCall) -> str:
    options = parse_options(call.args, "C", (*_FOLDER_OPTIONS, "script-shell"), exact_names=True)
    words = [arg.text for arg in options.operands]
    verb = words[0] if words else "install" if call.name == "yarn" else ""
    is_run = verb in _RUN_VERBS
    name = (words[1] if len(words) > 1 else "") if is_run else _SCRIPT_VERBS.get(verb, verb)
    runs_script = is_run or call.name != "npm" or verb in {*_SCRIPT_VERBS, *_INSTALL_VERBS, "restart"}
    _evaluate_program_options(call)
    if not name or not runs_script:
        return ""
    _evaluate_script_shell(call, options.value("C", *_FOLDER_OPTIONS))
    file = _find_file(call, ("package.json",), options.value("C", *_FOLDER_OPTIONS))
    is_here = isinstance(file, TaskFile) and os.path.dirname(file.path) in call.shell.cwd
    if "other" in call.earlier_changes and (is_here or verb not in _INSTALL_VERBS):
        call.unknown_reason = UNREAD_TASKS
    if not isinstance(file, TaskFile):
        return file if file == _CREATED else ""
    arguments = call.args[[arg.text for arg in call.args].index(words[is_run]) + 1 :] if words[is_run:] else []
    names = list(_INSTALL_SCRIPTS) if verb in _INSTALL_VERBS else _hooked(name)
    _evaluate_scripts(call, file, names, [arg for arg in arguments if arg.text != "--"])
    return ""


def _evaluate_program_options(call: CommandCall) -> None:
    """Evaluate the programs that options name, such as the shell that runs the scripts."""
    for index, arg in enumerate(call.args):
        if option := _PROGRAM_OPTION.fullmatch(arg.text):
            value = option[1][1:] if option[1] else "".join(call.arg_texts()[index + 1 : index + 2])
            call.evaluate_argv([msgspec.structs.replace(arg, text=value), *literal_words("-c", "true")])
        elif arg.text.startswith(("--userconfig", "--globalconfig")):
            call.unknown_reason = _SETTINGS


def _evaluate_script_shell(call: CommandCall, folder: ExpandedWord | None) -> None:
    """Evaluate the shell that the file .npmrc names for the scripts."""
    settings = _find_file(call, (".npmrc",), folder)
    if isinstance(settings, TaskFile):
        for value in _SCRIPT_SHELL_SETTING.findall(settings.text):
            call.evaluate_argv(literal_words(value, "-c", "true"))
    elif settings:
        call.unknown_reason = _SETTINGS


def _hooked(name: str) -> list[str]:
    names = [name] if name != "restart" else ["stop", "restart", "start"]
    return [f"{prefix}{word}" for word in names for prefix in ("pre", "", "post")]


def _evaluate_scripts(call: CommandCall, file: TaskFile, names: list[str], args: list[ExpandedWord]) -> None:
    try:
        scripts = msgspec.json.decode(file.text.lstrip("\ufeff")).get("scripts")
    except (msgspec.DecodeError, AttributeError):
        return
    if not isinstance(scripts, dict):
        return
    if parse_options(call.args).has(*_WORKSPACE_OPTIONS):
        call.unknown_reason = _OTHER_PACKAGES
    if UNKNOWN_TEXT in "".join(names):
        names = list(scripts)
    texts = [(name, scripts[name]) for name in names if isinstance(scripts.get(name), str)]
    with call.evaluator.inside_script(f"{file.path}:{names}", call) as is_new:
        for name, text in texts if is_new else ():
            words = [arg.text if UNKNOWN_TEXT in arg.text else shell_quote(arg.text) for arg in args]
            is_hook = name.startswith(("pre", "post")) and name != names[len(names) // 2]
            line = text if is_hook else " ".join([text, *words])
            call.evaluator.evaluate_text(line, file.shell.fork(), NO_STDIN, ())


# just

_JUST_NAMES = ("justfile", "Justfile", ".justfile")
_JUST_VALUED = ("justfile", "working-directory", "set", "shell", "shell-arg", "color", "dotenv-path")
_JUST_READS = split_names("l list n dry-run s show summary evaluate dump fmt variables usage init completions edit e")
_JUST_ASSIGNMENT = re.compile(r"(?:export\s+)?([\w-]+)\s*:=\s*(.*)")
_JUST_RECIPE = re.compile(r"@?([A-Za-z_][\w-]*)((?:\s+[^:]*)?):(?!=)(.*)")
_JUST_LITERAL = re.compile(r"\"([^\"\\]*)\"|'([^']*)'")


class _Justfile:
    """The recipes of a justfile: their lines and the names of the recipes that they need."""

    def __init__(self, text: str, run: Callable[[str], None]) -> None:
        self.recipes: dict[str, tuple[list[str], list[str]]] = {}
        self.variables: dict[str, str] = {}
        self.is_certain = True
        body: list[str] = []
        for line in text.replace("\\\n", " ").splitlines():
            if line[:1] in {" ", "\t"}:
                body.append(line.strip())
            elif assignment := _JUST_ASSIGNMENT.fullmatch(line):
                self._assign(assignment[1], assignment[2].strip(), run)
            elif recipe := _JUST_RECIPE.fullmatch(line.partition(" #")[0]):
                body = []
                self.recipes[recipe[1]] = (body, re.findall(r"[A-Za-z_][\w-]*", recipe[3]))
            elif line.startswith(("import", "mod ", "set shell", "set script", "alias")):
                self.is_certain = False

    def _assign(self, name: str, value: str, run: Callable[[str], None]) -> None:
        literal = _JUST_LITERAL.fullmatch(value)
        self.variables[name] = (literal[1] or literal[2] or "") if literal else UNKNOWN_TEXT
        for command in re.findall(r"`([^`]*)`", value):
            run(command)

    def lines(self, name: str) -> Iterator[str]:
        """Yield the command lines of a recipe; a recipe that starts with `#!` is one script."""
        body = [self._fill(line) for line in self.recipes[name][0]]
        if body and body[0].startswith("#!"):
            yield "\n".join(body)
        else:
            yield from (line.lstrip("@-") for line in body)

    def _fill(self, line: str) -> str:
        return re.sub(r"\{\{\s*(.*?)\s*\}\}", lambda match: self.variables.get(match[1], UNKNOWN_TEXT), line)


def _just(call: CommandCall) -> str:
    options = parse_options(call.args, "fd", _JUST_VALUED)
    if options.has(*_JUST_READS):
        return ""
    if reason := unknown_programs.danger_reason(call):
        return reason
    if shell := options.value("shell"):
        call.evaluate_argv([shell, *options.values("shell-arg"), ExpandedWord("true")])
    given = options.value("f", "justfile")
    names = (given.text,) if given is not None else _JUST_NAMES
    file = _find_file(call, names, options.value("d", "working-directory"))
    if "other" in call.earlier_changes:
        call.unknown_reason = UNREAD_TASKS
    if not isinstance(file, TaskFile):
        return file if file == _CREATED else ""
    goals = [arg.text for arg in options.operands if "=" not in arg.text]
    with call.evaluator.inside_script(f"{file.path}:{goals}", call, unknown_names=True) as is_new:
        if is_new:
            _evaluate_justfile(call, file, goals)
    return ""


def _evaluate_justfile(call: CommandCall, file: TaskFile, goals: list[str]) -> None:
    def run(line: str) -> None:
        shebang = re.match(r"#!\s*(?:/usr/bin/env\s+(?:-S\s+)?)?(\S+)", line)
        if shebang and shebang[1].rpartition("/")[2] not in {"sh", "bash", "dash", "zsh"}:
            call.unknown_reason = "a recipe of its justfile is in another language"
        else:
            call.evaluator.evaluate_text(line, file.shell, NO_STDIN, None)

    justfile = _Justfile(file.text, run)
    if not justfile.is_certain:
        call.unknown_reason = "its justfile cannot be read for certain"
    pending = [goal for goal in goals if goal in justfile.recipes or UNKNOWN_TEXT in goal]
    pending = pending or list(justfile.recipes)[: not goals]
    if any(UNKNOWN_TEXT in goal for goal in pending):
        pending = list(justfile.recipes)
    seen: set[str] = set()
    while pending:
        name = pending.pop()
        if name in justfile.recipes and name not in seen:
            seen.add(name)
            pending += justfile.recipes[name][1]
            for line in justfile.lines(name):
                run(line)


HANDLERS: dict[str, CommandHandler] = {
    **dict.fromkeys(("npm", "yarn", "pnpm", "bun"), _package_manager),
    "just": _just,
}
