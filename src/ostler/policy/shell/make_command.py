"""Evaluates what `make` would run: the recipes of its targets, as far as the makefile can be read."""

import os
import re
from collections.abc import Sequence

from ostler.policy.shell.command_call import NO_STDIN, CommandCall, CommandHandler
from ostler.policy.shell.command_evaluator import shell_quote
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord, literal_words
from ostler.policy.shell.file_changes import UNREAD_TASKS
from ostler.policy.shell.make_expansion import MakeExpander, MakeTooLarge, match_pattern
from ostler.policy.shell.makefiles import Makefile, MakeRule
from ostler.policy.shell.option_parser import parse_options
from ostler.policy.shell.shell_builtins import script_reason

MAX_TARGETS = 1000
_DEFAULT_NAMES = ("GNUmakefile", "makefile", "Makefile")
_LONGS = ("file", "makefile", "directory", "eval", "include-dir", "jobs", "old-file", "assume-old", "what-if")
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash"})
_UNKNOWN_NAME = "unknown"  # stands for a target that is known only at run time
_LINE_END = re.compile(r"(?<!\\)\n")
_TOO_LARGE = "its makefile is too large to analyse"


def _make(call: CommandCall) -> str:
    options = parse_options(call.args, "fCIlojWE", _LONGS)
    if options.has("version", "v", "help", "h"):
        return ""
    run = _MakeRun(call, dry=options.has("n", "just-print", "dry-run", "recon", "q", "question", "t", "touch"))
    for folder in options.values("C", "directory"):
        run.enter_folder(folder)
    if any(not arg.literal for arg in options.values("eval", "E")):
        return "runs commands that are known only at run time"
    reason = run.load(options.values("f", "file", "makefile"), [arg.text for arg in options.values("eval", "E")])
    for arg in options.operands:
        name, equals, value = arg.text.partition("=")
        if equals:
            run.overrides[name.rstrip(":+?")] = value
            if "$(" in value or name == "SHELL" or (" " in value and value[0] != "-"):
                run.texts.append(value)
        else:
            run.goals.append(arg.text)
    run.evaluate()
    return reason


class _MakeRun:
    """One call of `make`: the folder, the makefile, the variables of the command line, and the targets."""

    def __init__(self, call: CommandCall, dry: bool) -> None:
        self._call = call
        self._shell = call.shell.fork()
        self._dry = dry
        self._makefile = Makefile(self._read_include)
        self._path = ""
        self.overrides: dict[str, str] = {}
        self.goals: list[str] = []
        self.texts: list[str] = []  # values of variables that may be commands
        self._evaluated: set[str] = set()
        self._rules: list[tuple[str, MakeRule]] = []

    def enter_folder(self, folder: ExpandedWord) -> None:
        self._shell.change_folder(folder.text if folder.exact else UNKNOWN_TEXT, exists=True)

    def load(self, files: Sequence[ExpandedWord], texts: Sequence[str]) -> str:
        """Read the makefiles. Return why running them needs approval if the command line itself creates them."""
        reasons = []
        for file in files:
            reasons.append(script_reason(self._call, file, self._makefile.parse))
            if not file.exact:
                self._makefile.unread_reason = "its makefile is known only at run time"
            elif file.text != "-":
                self._read_file(file.text)
        if not files:
            self._load_default(reasons)
        for text in texts:
            self._makefile.parse(text)
        if "other" in self._call.earlier_changes:
            self._makefile.unread_reason = UNREAD_TASKS
        if not self._shell.cwd:
            self._makefile.unread_reason = "its makefile is in a folder that is known only at run time"
        return next(filter(None, reasons), "")

    def _load_default(self, reasons: list[str]) -> None:
        for name in _DEFAULT_NAMES:
            in_folder = CommandCall(self._call.evaluator, self._shell, "make", "make", [], NO_STDIN)
            reasons.append(script_reason(in_folder, ExpandedWord(name), self._makefile.parse))
        for name in _DEFAULT_NAMES:
            if self._read_file(name):
                break

    def _read_file(self, name: str) -> bool:
        """Parse a file of the file system, unless this command line writes it. Return whether it exists."""
        found = False
        for path in self._shell.resolve_paths(name):
            if path in self._call.evaluator.written_files:
                continue
            try:
                text = self._call.evaluator.read_script(path)
            except (OSError, ValueError):
                continue
            found, self._path = True, path
            if text is None:
                self._makefile.unread_reason = _TOO_LARGE
            else:
                self._makefile.parse(text)
        return found

    def _read_include(self, name: str) -> str:
        for path in self._shell.resolve_paths(name):
            if path in self._call.evaluator.written_files or self._evaluated & {path}:
                break
            self._evaluated.add(path)
            text = self._call.evaluator.read_script(path)
            if text is not None:
                return text
            self._makefile.unread_reason = f"its makefile includes {name}, which cannot be analysed"
        return ""

    def evaluate(self) -> None:
        """Evaluate what make runs while it reads the file, and the recipes of the targets."""
        try:
            if not self._path:  # everything is in the command line, so that each command needs its own rule
                self._evaluate_all()
                if self._makefile.unread_reason == UNREAD_TASKS:
                    self._call.unknown_reason = UNREAD_TASKS
                return
            key = " ".join([self._path, *self.goals, *(f"{name}={value}" for name, value in self.overrides.items())])
            with self._call.evaluator.inside_script(key, self._call, unknown_names=True) as is_new:
                if is_new:
                    self._evaluate_all()
        except MakeTooLarge:
            self._makefile.unread_reason = _TOO_LARGE
        self._call.unknown_reason = self._call.unknown_reason or self._makefile.unread_reason

    def _evaluate_all(self) -> None:
        folder = self._shell.cwd[0] if len(self._shell.cwd) == 1 else ""
        variables = self._makefile.variables
        expander = MakeExpander(variables, self.overrides, self._lookup, folder, self._run_line)
        for text in self.texts:
            self._run_line(expander.expand(text))
        for expander.variant in range(max((len(values) for values in variables.values()), default=1)):
            self._evaluate_variant(expander)

    def _evaluate_variant(self, expander: MakeExpander) -> None:
        makefile = self._makefile
        for text in makefile.shell_texts:
            self._run_line(expander.expand(text))
        for text in makefile.global_texts:
            if "$(shell" in text or "${shell" in text or "$(file" in text:
                expander.expand(text)
        for name in makefile.exported:
            value = expander.expand(f"$({name})")
            self._call.evaluator.check_assignment(name, value, self._shell)
        self._rules = [(word, rule) for rule in makefile.rules for word in expander.words(rule.targets)]
        _Targets(self, expander).evaluate(self.goals or self._default_goals(expander))

    def _default_goals(self, expander: MakeExpander) -> list[str]:
        if chosen := expander.words("$(.DEFAULT_GOAL)"):
            return chosen
        names = (word for word, _ in self._rules if "%" not in word and (word[:1] != "." or "/" in word))
        return [name for name in (next(names, ""),) if name]

    def _lookup(self, name: str) -> str:
        if name == "MAKE":
            return " ".join(["make", *(f"{key}={shell_quote(value)}" for key, value in self.overrides.items())])
        value = self._shell.lookup("PWD" if name == "CURDIR" else name)
        if isinstance(value, str) and name != "SHELL":
            return value
        return UNKNOWN_TEXT if name in os.environ and name != "SHELL" else ""

    def run_recipe(self, rule: MakeRule, expander: MakeExpander) -> None:
        """Evaluate the lines of a recipe; in a dry run make runs only those with a `+`."""
        in_one_shell = any(word == ".ONESHELL" for word, _ in self._rules)
        for line in ["\n".join(rule.recipe)] if in_one_shell else rule.recipe:
            if self._dry and not line.lstrip("@-").startswith("+"):
                continue
            expanded = expander.expand(line)
            for part in [expanded] if in_one_shell else _LINE_END.split(expanded):  # a `define` can have several lines
                self._run_line(part.lstrip("@+- \t"), expander)

    def _run_line(self, line: str, expander: MakeExpander | None = None) -> None:
        program, *flags = expander.words("$(SHELL) $(.SHELLFLAGS)") if expander else ["sh", "-c"]
        evaluator = self._call.evaluator
        if program.rpartition("/")[2] in _SHELLS and (UNKNOWN_TEXT not in program):
            evaluator.evaluate_text(line, self._shell, NO_STDIN, ())
        else:
            evaluator.evaluate_argv([*literal_words(program, *flags), ExpandedWord(line)], self._shell, NO_STDIN)

    def rules(self) -> list[tuple[str, MakeRule]]:
        return self._rules

    def exists(self, name: str) -> bool:
        return self._call.evaluator.filesystem.may_exist(ExpandedWord(name), self._shell)

    def give_up(self, reason: str) -> None:
        self._makefile.unread_reason = reason


class _Targets:
    """Walks the prerequisites of the goals, and evaluates the recipe of each target once."""

    def __init__(self, run: _MakeRun, expander: MakeExpander) -> None:
        self._run = run
        self._expander = expander
        self._seen: set[str] = set()
        self._pending: list[tuple[str, frozenset[int]]] = []

    def evaluate(self, goals: Sequence[str]) -> None:
        unknown = any(UNKNOWN_TEXT in goal for goal in goals)
        names = [*goals, *(word for word, _ in self._run.rules() if unknown and "%" not in word)]
        self._pending = [(name, frozenset()) for name in names]
        while self._pending:
            target, used = self._pending.pop()
            if target in self._seen:
                continue
            self._seen.add(target)
            if len(self._seen) > MAX_TARGETS:
                self._run.give_up(_TOO_LARGE)
                return
            if UNKNOWN_TEXT in target and self._run.rules():
                self._run.give_up("a target in its makefile is known only at run time")
            self._evaluate_target(target, used)

    def _evaluate_target(self, target: str, used: frozenset[int]) -> None:
        explicit = [rule for word, rule in self._run.rules() if "%" not in word and _is_same(word, target)]
        prerequisites = [word for rule in explicit for word in self._prerequisites(rule, target)]
        self._pending += [(word, used) for word in prerequisites]
        for rule in explicit:
            self._run_rule(rule, target, match_pattern(rule.pattern, target) or "", prerequisites)
        if not any(rule.recipe for rule in explicit) or UNKNOWN_TEXT in target:
            self._evaluate_implicit(target, used, prerequisites, bool(explicit))

    def _prerequisites(self, rule: MakeRule, target: str) -> list[str]:
        words = [word for word in self._expander.words(rule.prerequisites) if word != "|"]
        stem = match_pattern(rule.pattern, target) if rule.pattern else None
        return [word.replace("%", stem, 1) for word in words] if stem else words

    def _evaluate_implicit(self, target: str, used: frozenset[int], explicit: list[str], is_listed: bool) -> None:
        found = False
        for word, rule in self._run.rules():
            stem = match_pattern(word, target) if "%" in word else _suffix_stem(word, target)
            if stem is None or id(rule) in used or not rule.recipe or rule.pattern:
                continue
            words = [name.replace("%", stem, 1) for name in self._expander.words(rule.prerequisites) if name != "|"]
            if words and self._run.exists(target) and not any(self._can_exist(name) for name in words):
                continue
            found = True
            self._pending += [(name, used | {id(rule)}) for name in words]
            self._run_rule(rule, target, stem, [*words, *explicit])
        if not found and not is_listed and not self._run.exists(target):
            for word, rule in self._run.rules():
                if word == ".DEFAULT":
                    self._run_rule(rule, target, "", [])

    def _can_exist(self, name: str) -> bool:
        return self._run.exists(name) or any(_is_same(word, name) for word, _ in self._run.rules())

    def _run_rule(self, rule: MakeRule, target: str, stem: str, prerequisites: list[str]) -> None:
        if not rule.recipe:
            return
        target, stem = (text.replace(UNKNOWN_TEXT, _UNKNOWN_NAME) for text in (target, stem))
        first, all_names = (prerequisites or [""])[0], " ".join(dict.fromkeys(prerequisites))
        values = {"@": target, "%": "", "<": first, "^": all_names, "+": all_names, "?": all_names, "*": stem, "|": ""}
        parts = {
            f"{name}{letter}": " ".join(_path_part(word, letter) for word in value.split())
            for name, value in values.items()
            for letter in "DF"
        }
        self._expander.automatic = values | parts
        self._run.run_recipe(rule, self._expander)
        self._expander.automatic = {}


def _path_part(word: str, letter: str) -> str:
    folder, _, name = word.rpartition("/")
    return name if letter == "F" else folder or "."


def _is_same(word: str, target: str) -> bool:
    if UNKNOWN_TEXT in word:
        return match_pattern(word, target) is not None
    return word.removeprefix("./") == target.removeprefix("./")


def _suffix_stem(word: str, target: str) -> str | None:
    """Return the stem if a suffix rule such as `.c.o` may make the target, or None."""
    suffix = word.rpartition(".")[2]
    is_suffix_rule = word.startswith(".") and word.count(".") == 2 and "/" not in word
    return target.removesuffix(f".{suffix}") if is_suffix_rule and target.endswith(f".{suffix}") else None


HANDLERS: dict[str, CommandHandler] = dict.fromkeys(("make", "gmake", "bmake"), _make)
