"""Walks a read script the way a shell would run it: lists, pipelines, branches, loops, functions."""

import re

from ostler.policy.shell import bombs, expand
from ostler.policy.shell.args import HOLE, Arg
from ostler.policy.shell.call import NO_FEED, PIPED, Feed
from ostler.policy.shell.dynamic import names_only
from ostler.policy.shell.running import Runner
from ostler.policy.shell.scope import ALTERNATIVES, Scope, Value
from ostler.policy.shell.tree import Command, Compound, Function, Item, Node, Pipe, Script

_PLAIN_NAME = re.compile(r"[\w./-]+")
_LEAVES = frozenset({"exit", "return", "break", "continue"})


class Walk(Runner):
    """The order in which things happen; what may or may not happen, the state afterwards allows for both."""

    def script(self, script: Script, scope: Scope, feed: Feed = NO_FEED) -> None:
        """Walk the commands of a list, chain by chain."""
        trail: list[Scope] = []
        items = script.items
        for at, item in enumerate(items):
            if item.link == ";":
                scope.join(trail)
                scope.cd_is_over()
                trail = []
            elif item.link == "||":
                if self._leaves(item):
                    self._item(item, scope.fork(), feed)
                    for state in (scope, *trail):
                        state.if_cd_failed = ()
                    continue
                scope.join(trail)
                scope.cd_is_over()
            self._item(item, scope, feed)
            if item.link != ";" or (at + 1 < len(items) and items[at + 1].link != ";"):
                trail.append(scope.fork())
        scope.join(trail)
        scope.cd_is_over()

    def _item(self, item: Item, scope: Scope, feed: Feed) -> None:
        self.node(item.node, scope.fork() if item.background else scope, feed)

    @staticmethod
    def _leaves(item: Item) -> bool:
        node = item.node
        if isinstance(node, Compound) and node.kind == "group" and node.scripts[0].items:
            node = node.scripts[0].items[-1].node
        return isinstance(node, Command) and bool(node.words) and node.words[0].raw in _LEAVES

    def node(self, node: Node, scope: Scope, feed: Feed) -> None:
        """Walk one command of any kind."""
        if isinstance(node, Command):
            self.command(node, scope, feed)
        elif isinstance(node, Pipe):
            self._pipe(node, scope, feed)
        elif isinstance(node, Function):
            self._define(node, scope)
        else:
            self._compound(node, scope, feed)

    def _pipe(self, node: Pipe, scope: Scope, feed: Feed) -> None:
        for stage in node.stages:
            self.node(stage, scope.fork(), feed)
            fed = feed.text if feed.kind == "text" else None
            certain = expand.output(Script([Item(stage)]), scope, fed=fed)
            text = expand.output(Script([Item(stage)]), scope, fed=fed, bash=True) if certain is None else certain
            feed = PIPED if text is None else Feed("text", text, echoed=certain is None)

    def _define(self, node: Function, scope: Scope) -> None:
        if bombs.is_bomb(node):
            self.deny("a function that starts itself without end")
        scope.functions[node.name] = node.body
        self.uncalled[id(node.body)] = (node.body, scope.fork())

    def walk_uncalled(self) -> None:
        """Walk the functions that nothing has called; something may still do it, with arguments not known."""
        while self.uncalled:
            _, (body, scope) = self.uncalled.popitem()
            scope.positional = None
            self.node(body, scope, PIPED)

    # compound commands

    def _compound(self, node: Compound, scope: Scope, feed: Feed) -> None:
        for word in (*node.words, *(redirect.target for redirect in node.redirects)):
            self.inner(word, scope, feed)
        feed = self.redirected(node.redirects, scope, feed, node)
        if node.kind == "group":
            self.script(node.scripts[0], scope, feed)
        elif node.kind in {"subshell", "coproc"}:
            self.script(node.scripts[0], scope.fork(), PIPED if node.kind == "coproc" else feed)
        elif node.kind == "if":
            self._if(node, scope, feed)
        elif node.kind == "case":
            self._branches(node.scripts, scope, feed, also_none=True)
        elif node.kind in {"loop", "for"}:
            self._loop(node, scope, feed)
        else:
            self._test(node, scope)
            for script in node.scripts:
                self.script(script, scope.fork(), feed)

    def _if(self, node: Compound, scope: Scope, feed: Feed) -> None:
        self.script(node.scripts[0], scope, feed)
        self._branches(node.scripts[1:], scope, feed, also_none=node.name != "else")

    def _branches(self, scripts: tuple[Script, ...], scope: Scope, feed: Feed, also_none: bool) -> None:
        ends = []
        for script in scripts:
            twin = scope.fork()
            self.script(script, twin, feed)
            ends.append(twin)
        if not also_none and ends:
            scope.become(ends.pop())
        scope.join(ends)

    def _loop(self, node: Compound, scope: Scope, feed: Feed) -> None:
        if bombs.starts_without_end(node):
            self.deny("a loop that starts programs without end")
        before = scope.fork()
        for _ in range(2):  # what one round leaves behind, the next one finds
            if node.kind == "for":
                scope.vars[node.name] = self._values(node, scope)
            state = scope.marks()
            for script in node.scripts:
                self.script(script, scope, feed)
            changed = state != scope.marks()
            scope.join([before])
            if not changed:
                break

    @staticmethod
    def _values(node: Compound, scope: Scope) -> tuple[Value, ...]:
        if not node.words:
            return scope.positional or (None,)
        args = [arg for word in node.words for arg in expand.fields(word, scope)]
        values: tuple[Value, ...] = tuple(dict.fromkeys(_one_of(arg) for arg in args))
        return values if 0 < len(values) <= ALTERNATIVES else (None,)

    def _test(self, node: Compound, scope: Scope) -> None:
        for word in node.words:
            self.evaluated(word.raw)
        if _PLAIN_NAME.fullmatch(node.name) and self.places.any_exists(Arg(node.name), scope):
            self.confirm(f"some shells would overwrite {node.name} here")


def _one_of(arg: Arg) -> str | None:
    """What a loop's variable is in one round; of a file's name at least that it is no option."""
    if arg.exact:
        return arg.text
    if arg.glob and arg.literal:
        return ("./" if arg.text[0] in "*?[" else "") + re.sub(r"[*?]+|\[.+?\]", HOLE, arg.text)
    return f"./{HOLE}" if names_only(arg) and arg.text == HOLE else None
