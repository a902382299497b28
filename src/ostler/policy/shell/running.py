"""Runs simple commands in thought: expansion, assignments, redirections, and the judge's word on each."""

import itertools
import re
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from ostler.policy.shell import environment, expand, leaks
from ostler.policy.shell.args import HOLE, Arg, program
from ostler.policy.shell.call import NO_FEED, PIPED, Call, Feed, Handler
from ostler.policy.shell.places import Places
from ostler.policy.shell.reader import read
from ostler.policy.shell.record import Simple, record, with_files
from ostler.policy.shell.scope import Scope, Value
from ostler.policy.shell.tree import (
    Array,
    Command,
    Compound,
    Node,
    Param,
    Redirect,
    Script,
    Sub,
    Text,
    Word,
    inner_parts,
)
from ostler.policy.shell.words import Unreadable

DEPTH = 16  # eight wrappers: each counts as a command and as the text it runs
STEPS = 1500
WORLDS = 32
ARGUMENTS = 40000
Verdict = Literal["deny", "confirm", "ordinary"]
_LEVELS: tuple[Verdict, ...] = ("ordinary", "confirm", "deny")
_DUPLICATE = re.compile(r"\d+-?|-")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_EVALUATED_LATER = re.compile(r"[A-Za-z0-9_]\[[^\]]{0,200}?(?:\$\(|`)")
_OUTPUTS = frozenset({">", ">|", "&>", ">&", "<>", ">>", "&>>"})


class TooLong(Exception):
    """The script has more commands, or a command more arguments, than are followed."""


class Runner:
    """Everything about single commands; the order in which they come is the subclass's matter."""

    def __init__(self, exists: Callable[[str], bool], judge: Handler) -> None:
        self.places = Places(exists)
        self.written: dict[str, str | None] = {}
        self.commands: list[Simple] = []
        self.level = 0
        self.why = ""
        self.stranger = ""
        self.readable = True
        self._judge = judge
        self._depth = 0
        self._stdin = NO_FEED  # as a lone `exec` has left it
        self._steps = 0
        self._running: set[int] = set()
        self.uncalled: dict[int, tuple[Node, Scope]] = {}

    # findings

    @property
    def commands_seen(self) -> int:
        """How many commands were met so far."""
        return len(self.commands)

    @property
    def verdict(self) -> Verdict:
        """The gravest thing found; a stranger must be asked about like what is dangerous."""
        return _LEVELS[max(self.level, bool(self.stranger))]

    def confirm(self, why: str) -> None:
        """A person must be asked."""
        self._flag(1, why)

    def confirm_also(self, why: str) -> None:
        """A person must be asked for this too, whatever else was found."""
        self.level, self.why = max(self.level, 1), f"{why}; {self.why}" if self.why else why

    def deny(self, why: str) -> None:
        """This is refused, whoever asks."""
        self._flag(2, why)

    def _flag(self, level: int, why: str) -> None:
        if level > self.level:
            self.level, self.why = level, why

    # scripts inside commands

    def node(self, node: Node, scope: Scope, feed: Feed) -> None:
        """Walk any node."""
        raise NotImplementedError

    def script(self, script: Script, scope: Scope, feed: Feed = NO_FEED) -> None:
        """Walk a script."""
        raise NotImplementedError

    def text(self, text: str, scope: Scope, feed: Feed = NO_FEED, positional: tuple[str, ...] | None = ()) -> None:
        """Walk shell text in a shell of its own."""
        twin = scope.fork()
        twin.positional = positional
        self.text_here(text, twin, feed)

    def text_here(self, text: str, scope: Scope, feed: Feed = NO_FEED) -> None:
        """Walk shell text in this very shell, as `eval` does."""
        with_room = self._enter()
        try:
            script: Script | None = read(text) if with_room else None
        except Unreadable as error:
            self.readable = False
            self.confirm(f"it cannot be read for certain: {error}")
            script = error.partial
        if script:
            self.script(script, scope, feed)
        self._depth -= 1

    def _enter(self) -> bool:
        self._depth += 1
        if self._depth > DEPTH:
            self.confirm("commands are wrapped in commands too deeply")
        return self._depth <= DEPTH

    def inner(self, word: Word, scope: Scope, feed: Feed) -> None:
        """Walk the substitutions inside a word."""
        for part in inner_parts(word.parts):
            if isinstance(part, Sub):
                self.script(part.script, scope.fork(), PIPED if part.kind == ">" and feed.kind == "none" else feed)
            elif isinstance(part, Param) and part.op == "@P":
                self.confirm("expands a variable as a prompt, which runs what is in it")

    # simple commands

    def command(self, node: Command, scope: Scope, feed: Feed) -> None:
        """Run a simple command, once for each value its variables may have."""
        self._steps += 1
        if self._steps > STEPS:
            raise TooLong
        words = (*node.assigns, *node.words, *(redirect.target for redirect in node.redirects))
        for word in words:
            if len(word.parts) > 1 or not isinstance(word.parts[0], Text):
                self.inner(word, scope, feed)
        worlds = self._worlds(words, scope)
        if worlds is None:
            self._once(node, scope, feed)
            return
        before = scope.fork()
        for at, world in enumerate(worlds):
            twin = before.fork()
            twin.choice = world
            self._once(node, twin, feed)
            twin.choice = {}
            if at:
                scope.join([twin])
            else:
                scope.become(twin)

    @staticmethod
    def _worlds(words: Sequence[Word], scope: Scope) -> list[dict[str, Value]] | None:
        if not scope.vars:
            return None
        names = [part.name for word in words for part in word.parts if isinstance(part, Param)]
        several = scope.several(names)
        if not several:
            return None
        combinations = itertools.product(*(values for _, values in several))
        chosen = list(itertools.islice(combinations, WORLDS + 1))
        if len(chosen) > WORLDS:
            return None
        return [dict(zip((name for name, _ in several), values, strict=True)) for values in chosen]

    def _once(self, node: Command, scope: Scope, feed: Feed) -> None:
        argv: list[Arg] = []
        for word in node.words:
            argv += expand.fields(word, scope)
            if len(argv) > ARGUMENTS:
                raise TooLong
        assigned = [self._assignment(word, scope) for word in node.assigns]
        feed = self.redirected(node.redirects, scope, feed if feed.kind != "none" else self._stdin, node)
        if len(argv) == 1 and argv[0].text == "exec":
            self._stdin = feed
        if not argv:
            for name, value in assigned:
                scope.assign(name, value)
            return
        before = {name: scope.vars.get(name) for name, _ in assigned}
        for name, value in assigned:
            scope.assign(name, value)
        at = len(self.commands)
        self.run(argv, scope, feed)
        if node.redirects and at < len(self.commands):
            self.commands[at] = with_files(self.commands[at], node.redirects, scope)
        for name, values in before.items():
            if values is None:
                scope.vars.pop(name, None)
            else:
                scope.vars[name] = values

    def _assignment(self, word: Word, scope: Scope) -> tuple[str, Value]:
        name, value = assignment(word, scope)
        self.assigned(name, value, scope)
        return name, value

    def assigned(self, name: str, value: Value, scope: Scope) -> None:
        """Look at what a variable is set to: some are programs, and some values are evaluated later."""
        for text in (value,) if isinstance(value, str) or value is None else value:
            self.evaluated(text or "")
            environment.look(self, name, text, scope)

    def evaluated(self, text: str) -> None:
        """Look at a text that a builtin takes for a variable's name: an index in it is run."""
        if _EVALUATED_LATER.search(text):
            self.confirm("names an array element whose index runs a command")

    def run(self, argv: Sequence[Arg], scope: Scope, feed: Feed) -> None:
        """Judge one command: record it, follow functions and aliases, ask the tables."""
        if self._enter():
            self.commands.append(record(argv, scope, self.places))
            head = argv[0]
            name = program(head)
            if not name:
                self.confirm("the name of the command is known only when it runs")
            elif not self._own(head.text, argv, scope, feed):
                name = self.places.copies.get(name, name)
                if HOLE in name:
                    self.confirm("runs a copy of a program that is known only when it runs")
                at, call = len(self.commands) - 1, Call(self, scope, head.text, name, list(argv[1:]), feed)
                if why := self._judge(call):
                    self.confirm(why)
                elif call.stranger:
                    self.stranger = self.stranger or call.stranger
                    self.commands[at] = msgspec.structs.replace(self.commands[at], stranger=call.stranger)
                self._deny_devices()
        self._depth -= 1

    def _own(self, name: str, argv: Sequence[Arg], scope: Scope, feed: Feed) -> bool:
        """Whether the command is a function or alias of this line; then its body is walked."""
        body = scope.aliases.get(name) or scope.functions.get(name)
        if body is None or id(body) in self._running:
            return False
        self._running.add(id(body))
        if isinstance(body, str):
            self.text_here(" ".join([body, *(quoted(arg.text) for arg in argv[1:])]), scope, feed)
        else:
            self.uncalled.pop(id(body), None)
            outer, scope.positional = scope.positional, tuple(arg.text for arg in argv[1:])
            self.node(body, scope, feed)
            scope.positional = outer
        self._running.discard(id(body))
        return True

    # redirections

    def redirected(self, redirects: Sequence[Redirect], scope: Scope, feed: Feed, node: Command | Compound) -> Feed:
        """Look at every redirection, and tell what the command reads in the end."""
        outputs: list[tuple[Redirect, Arg]] = []
        for redirect in redirects:
            if redirect.body is not None:
                self.inner(redirect.body, scope, feed)
                feed = self._text_feed(expand.value(redirect.body.parts, scope), redirect, feed)
            elif redirect.op == "<<<":
                feed = self._text_feed(expand.value(redirect.target.parts, scope) + "\n", redirect, feed)
            elif redirect.op == ">&" and redirect.fd == "0":
                feed = PIPED
            elif redirect.op in _OUTPUTS:
                if arg := self._output(redirect, scope):
                    outputs.append((redirect, arg))
            elif redirect.fd in {"", "0"}:
                feed = self._input(redirect, scope)
        if outputs:
            self._remember(outputs, scope, feed, node)
        return feed

    @staticmethod
    def _text_feed(text: str, redirect: Redirect, feed: Feed) -> Feed:
        return Feed("text", text) if redirect.fd in {"", "0"} else feed

    def _input(self, redirect: Redirect, scope: Scope) -> Feed:
        args = expand.fields(redirect.target, scope)
        if len(args) != 1 or redirect.op == "<&":
            return PIPED
        arg = args[0]
        if arg.piped:
            return PIPED if arg.source is None else Feed("text", arg.source)
        if not arg.exact or arg.text.startswith(("/dev/tcp/", "/dev/udp/", "/dev/fd/")):
            return PIPED
        for path in scope.places(arg.text):
            if path in self.written:
                content = self.written[path]
                return PIPED if content is None else Feed("text", content)
        return Feed("file", arg.text)

    def _output(self, redirect: Redirect, scope: Scope) -> Arg | None:
        """Look at one file that is written to, and give it back when its name is known."""
        args = expand.fields(redirect.target, scope)
        if len(args) != 1:
            self.confirm("redirects to several files")
            return None
        arg = args[0]
        if redirect.op == ">&" and _DUPLICATE.fullmatch(arg.text):
            return None
        if why := self.places.overwrites(arg, scope, appends=redirect.op in {">>", "&>>"}):
            self.confirm(why)
            self._deny_devices()
        if redirect.target.raw == "!":
            self.confirm("redirects to ! , which some shells take as force")
        return arg if arg.exact else None

    def _deny_devices(self) -> None:
        if self.places.devices:
            self.deny(f"writes to the device {self.places.devices[0]}")

    def _remember(
        self, outputs: list[tuple[Redirect, Arg]], scope: Scope, feed: Feed, node: Command | Compound
    ) -> None:
        """Keep what this line puts into files, in case it runs them later."""
        said = None
        if isinstance(node, Command):
            said = expand.spoken(node, scope, fed=feed.text if feed.kind == "text" else None)
        for redirect, arg in outputs:
            if said is None and isinstance(node, Command) and (why := leaks.sent_to(arg.text, node)):
                self.confirm(why)
            content = said if redirect.op in {">", ">|", ">>"} and redirect.fd in {"", "1"} else None
            for path in scope.places(arg.text):
                before = self.written.get(path, "") if redirect.op == ">>" else ""
                self.written[path] = None if content is None or before is None else before + content


def quoted(text: str) -> str:
    """A text in quotes, so that a shell reads it back as it is."""
    return "'" + text.replace("'", "'\\''") + "'"


def assignment(word: Word, scope: Scope) -> tuple[str, Value]:
    """The name and value of `name=value`; the value is None when it cannot be told as a whole."""
    first = word.parts[0]
    head = _ASSIGNMENT.match(first.text) if isinstance(first, Text) else None
    if not head:
        return re.split(r"[\[=+]", word.raw, maxsplit=1)[0], None
    assert isinstance(first, Text)
    name, plus = head.groups()
    rest = (Text(first.text[head.end() :]), *word.parts[1:])
    if isinstance(word.parts[-1], Array):
        args = [arg for each in word.parts[-1].words for arg in expand.fields(each, scope)]
        return name, None if plus else tuple(arg.text for arg in args)
    text = expand.value(rest, scope)
    if not plus:
        return name, text
    before = scope.lookup(name)
    return name, before + text if isinstance(before, str) else None
