"""Expands words like a shell, as far as possible without running anything."""

import os.path
import re
from itertools import pairwise

from ostler.policy.shell import echo_printf
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.shell_state import UNUSED_PID, ShellState, ShellValue, home_folder
from ostler.policy.shell.syntax_tree import (
    ArithmeticPart,
    ArrayPart,
    CommandNode,
    CompoundNode,
    LiteralPart,
    ParameterPart,
    PipelineNode,
    ScriptNode,
    ShellWord,
    SubstitutionPart,
    WordPart,
)

_GLOB = re.compile(r"[*?]|\[.+\]", re.DOTALL)
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_MAX_DEPTH = 12
_MAX_LENGTH = 131072
_MAX_FIELDS = 64
_MAX_WORDS = 256  # that one word may expand to by braces
_RANGE = re.compile(r"(-?\d{1,6}|[A-Za-z])\.\.(-?\d{1,6}|[A-Za-z])(?:\.\.(-?\d{1,6}))?")

_BraceToken = str | WordPart  # a single unquoted character, or a part without brace expansion


def expand_word(word: ShellWord, shell: ShellState, depth: int = 0) -> list[ExpandedWord]:
    """Expand one word to arguments: braces, variables, known command output, field splitting."""
    words = _expand_braces(word)
    if words is None:
        return [ExpandedWord(UNKNOWN_TEXT)]
    return [arg for item in words for arg in _FieldBuilder(shell, depth).build(item.parts)]


# braces: `{a,b}` and `{1..3}`


def _expand_braces(word: ShellWord) -> list[ShellWord] | None:
    """Return the words that a word expands to, or None if there are too many."""
    unquoted = "".join(part.text for part in word.parts if isinstance(part, LiteralPart) and not part.quoted)
    if "{" not in unquoted or ("," not in unquoted and ".." not in unquoted):
        return [word]
    if unquoted.count("{") > 32:
        return None
    expanded = _expand_tokens(_brace_tokens(word))
    if expanded is None:
        return None
    return [ShellWord(_join_tokens(tokens), word.raw) for tokens in expanded]


def _brace_tokens(word: ShellWord) -> list[_BraceToken]:
    tokens: list[_BraceToken] = []
    for part in word.parts:
        if isinstance(part, LiteralPart) and not part.quoted:
            tokens.extend(part.text)
        else:
            tokens.append(part)
    return tokens


def _join_tokens(tokens: list[_BraceToken]) -> tuple[WordPart, ...]:
    parts: list[WordPart] = []
    for token in tokens:
        last = parts[-1] if parts else None
        if not isinstance(token, str):
            parts.append(token)
        elif isinstance(last, LiteralPart) and not last.quoted:
            parts[-1] = LiteralPart(last.text + token)
        else:
            parts.append(LiteralPart(token))
    return tuple(parts)


def _expand_tokens(tokens: list[_BraceToken]) -> list[list[_BraceToken]] | None:
    for start, token in enumerate(tokens):
        if token != "{":
            continue
        choices, stop = _split_choices(tokens, start)
        if not choices:
            continue
        tails = _expand_tokens(tokens[stop + 1 :])
        heads = [_expand_tokens(choice) for choice in choices]
        if tails is None or None in heads:
            return None
        words = [head for expansions in heads if expansions for head in expansions]
        if len(words) * len(tails) > _MAX_WORDS:
            return None
        return [tokens[:start] + head + tail for head in words for tail in tails]
    return [tokens]


def _split_choices(tokens: list[_BraceToken], start: int) -> tuple[list[list[_BraceToken]], int]:
    """Return the alternatives in a brace (empty if it does not expand) and the index of the closing brace."""
    level = 0
    separators = [start]
    for index in range(start, len(tokens)):
        token = tokens[index]
        level += (token == "{") - (token == "}")
        if token == "," and level == 1:
            separators.append(index)
        if not level:
            separators.append(index)
            break
    else:
        return [], start
    if len(separators) > 2:
        return [tokens[begin + 1 : end] for begin, end in pairwise(separators)], separators[-1]
    inner = tokens[start + 1 : separators[-1]]
    return _expand_range("".join(token for token in inner if isinstance(token, str))), separators[-1]


def _expand_range(text: str) -> list[list[_BraceToken]]:
    match = _RANGE.fullmatch(text)
    if not match:
        return []
    first, last, step = match.groups()
    if first.isalpha() != last.isalpha():
        return []
    begin, end = (ord(first), ord(last)) if first.isalpha() else (int(first), int(last))
    stride = abs(int(step or 1)) or 1
    numbers = range(begin, end + 1, stride) if begin <= end else range(begin, end - 1, -stride)
    return [list(chr(number) if first.isalpha() else str(number)) for number in numbers[: _MAX_WORDS + 1]]


# variables and fields


def expand_unsplit(parts: tuple[WordPart, ...], shell: ShellState, depth: int = 0) -> str:
    """Expand an assignment or here-document to one text, without field splitting."""
    texts: list[str] = []
    length = 0
    for index, part in enumerate(parts):
        texts.append(_expand_part(part, shell, depth, is_first=not index))
        length += len(texts[-1])
        if length > _MAX_LENGTH:
            return UNKNOWN_TEXT
    return "".join(texts)


def _expand_part(part: WordPart, shell: ShellState, depth: int, is_first: bool) -> str:
    if isinstance(part, LiteralPart):
        return expand_tilde(part.text, shell) if is_first and not part.quoted else part.text
    if isinstance(part, ParameterPart):
        value = expand_parameter(part, shell, depth)
        return UNKNOWN_TEXT if value is None else join_array(value, shell) if isinstance(value, tuple) else value
    if isinstance(part, SubstitutionPart):
        value = known_output(part.script, shell, depth + 1) if part.kind == "$" else None
        return UNKNOWN_TEXT if value is None else value.rstrip("\n")
    return UNKNOWN_TEXT


def join_array(items: tuple[str, ...], shell: ShellState) -> str:
    """Join an array with the first separator of IFS."""
    separators = shell.lookup("IFS")
    return separators[:1].join(items) if isinstance(separators, str) else UNKNOWN_TEXT


def expand_tilde(text: str, shell: ShellState) -> str:
    """Replace a leading `~`, `~user`, `~+` or `~-`."""
    if not text.startswith("~"):
        return text
    name, slash, rest = text[1:].partition("/")
    if name == "":
        folder = shell.lookup("HOME")
        return (folder if isinstance(folder, str) else home_folder()) + slash + rest
    if name == "+" and len(shell.cwd) == 1:
        return shell.cwd[0] + slash + rest
    return UNKNOWN_TEXT + slash + rest if name in {"+", "-"} or "\0" in name else os.path.expanduser(text)


class _FieldBuilder:
    """Builds the fields of one word."""

    def __init__(self, shell: ShellState, depth: int) -> None:
        self.shell = shell
        self.depth = depth
        self.fields: list[ExpandedWord] = []
        self.current = ExpandedWord("")
        self.is_open = False

    def build(self, parts: tuple[WordPart, ...]) -> list[ExpandedWord]:
        for index, part in enumerate(parts):
            if isinstance(part, SubstitutionPart):
                self.current.origin = _substitution_command(part.script)
            if isinstance(part, LiteralPart):
                self._add_text(part, is_first=not index)
            elif isinstance(part, SubstitutionPart) and part.kind != "$":
                self.current.piped = self.is_open = True
                self.current.text += "/dev/fd/63"
                self.current.source_text = (
                    known_output(part.script, self.shell, self.depth + 1) if part.kind == "<" else ""
                )
            elif isinstance(part, ParameterPart):
                value = expand_parameter(part, self.shell, self.depth)
                if value is None or UNKNOWN_TEXT in "".join(value):
                    self.current.origin = self.current.origin or f"${part.name}{part.index}"
                    self.current.may_split |= not part.quoted or _expands_to_list(part)
                    self.current.may_differ |= not part.quoted and part.name in self.shell.variables
                self._add_value(value, part.quoted, _expands_to_list(part))
            elif isinstance(part, SubstitutionPart):
                text = known_output(part.script, self.shell, self.depth + 1)
                if text is None and not part.quoted:
                    self.current.may_differ = self.current.may_split = True
                self._add_value(None if text is None else text.rstrip("\n"), part.quoted, False)
            elif isinstance(part, (ArithmeticPart, ArrayPart)):
                self._add_value(None, True, False)
        self._close_field()
        return self.fields

    def _add_text(self, part: LiteralPart, is_first: bool) -> None:
        self.is_open = True
        if part.quoted:
            self.current.text += part.text
            return
        text = expand_tilde(part.text, self.shell) if is_first else part.text
        self.current.text += text
        self.current.is_glob = self.current.is_glob or bool(_GLOB.search(part.text))

    def _add_value(self, value: ShellValue, quoted: bool, expands_to_list: bool) -> None:
        if value is None or len(self.current.text) > _MAX_LENGTH:
            self.current.text += UNKNOWN_TEXT
            self.is_open = True
        elif quoted and not (expands_to_list and isinstance(value, tuple)):
            self.current.text += join_array(value, self.shell) if isinstance(value, tuple) else value
            self.is_open = True
        elif quoted:
            self._add_fields(list(value), glob=False)
        else:
            texts = value if isinstance(value, tuple) else (value,)
            fields = [field for text in texts for field in self._split_fields(text)]
            self._add_fields(fields if len(fields) <= _MAX_FIELDS else [UNKNOWN_TEXT], glob=True)

    def _split_fields(self, text: str) -> list[str]:
        separators = self.shell.lookup("IFS")
        if not isinstance(separators, str) or UNKNOWN_TEXT in separators:
            return [UNKNOWN_TEXT]
        fields = [text]
        for separator in dict.fromkeys(separators):
            fields = [field for text_part in fields for field in text_part.split(separator)]
        # an empty first or last field means that the word is split there
        return fields if len(fields) == 1 else [fields[0], *filter(None, fields[1:-1]), fields[-1]]

    def _add_fields(self, texts: list[str], glob: bool) -> None:
        for index, text in enumerate(texts):
            if index:
                self._close_field()
            self.current.text += text
            self.is_open = self.is_open or bool(text) or not glob
            self.current.is_glob = self.current.is_glob or (glob and bool(_GLOB.search(text)))

    def _close_field(self) -> None:
        if self.is_open:
            self.fields.append(self.current)
        self.current, self.is_open = ExpandedWord(""), False


def _substitution_command(script: ScriptNode) -> str:
    """Return the command line of a substitution if it is one command or a pipeline, else an empty string."""
    node = script.items[0].node if len(script.items) == 1 else None
    stages = node.stages if isinstance(node, PipelineNode) else (node,)
    commands = [" ".join(word.raw for word in stage.words) for stage in stages if isinstance(stage, CommandNode)]
    return " | ".join(commands) if len(commands) == len(stages) else ""


def _expands_to_list(part: ParameterPart) -> bool:
    return part.name == "@" or part.index == "@"


def expand_parameter(part: ParameterPart, shell: ShellState, depth: int = 0) -> ShellValue:
    """Return the value of a parameter, or None if it is known only at run time."""
    if part.prefix:
        return None
    value = (
        shell.lookup(part.name) if part.name[0].isalpha() or part.name[0] == "_" else shell.lookup_parameter(part.name)
    )
    if part.index not in {"", "@", "*"}:
        value = _array_element(value, part.index)
    elif isinstance(value, tuple) and not part.index and part.name not in {"@", "*"}:
        value = value[0] if value else ""
    if not part.op:
        return value
    if part.op in {":-", "-", ":=", "="} and depth < _MAX_DEPTH:
        return value if value is None or value else expand_unsplit(part.operand, shell, depth + 1)
    return None


def _array_element(value: ShellValue, index: str) -> ShellValue:
    if isinstance(value, tuple) and index.isdigit():
        return value[int(index[:6])] if int(index[:6]) < len(value) else ""
    return None


def known_output(
    script: ScriptNode, shell: ShellState, depth: int = 0, stdin_text: str | None = None, bash: bool = False
) -> str | None:
    """Return the output of a script that only prints known text, or None.

    Shells differ on backslashes in `echo`: with `bash` they are handled like in bash, otherwise such text is unknown.
    """
    if depth > _MAX_DEPTH:
        return None
    outputs = [_node_output(item.node, shell, depth, stdin_text, bash) for item in script.items if not item.background]
    if len(outputs) != len(script.items) or any(item.operator == "||" for item in script.items):
        return None
    known = [output for output in outputs if output is not None]
    return "".join(known) if len(known) == len(outputs) else None


def _node_output(node: object, shell: ShellState, depth: int, stdin_text: str | None, bash: bool) -> str | None:
    if isinstance(node, CompoundNode) and node.kind in {"group", "subshell"} and not node.redirects:
        return known_output(node.scripts[0], shell, depth + 1, stdin_text, bash)
    if not isinstance(node, CommandNode):
        return None
    output_redirects = [r for r in node.redirects if r.op not in {"<<", "<<-", "<<<"} and r.fd in {"", "1"}]
    return None if output_redirects else command_output(node, shell, depth, stdin_text, bash)


def command_output(
    command: CommandNode, shell: ShellState, depth: int = 0, stdin_text: str | None = None, bash: bool = False
) -> str | None:
    """Return the standard output of a simple command (ignoring redirections), or None if it is unknown."""
    args = [arg for word in command.words for arg in expand_word(word, shell, depth + 1)]
    if not args or not all(arg.exact for arg in args) or args[0].text in shell.functions:
        return None
    name, *rest = [arg.text for arg in args]
    if name == "echo":
        return echo_printf.echo_output(rest, bash)
    if name == "printf":
        return echo_printf.printf_output(rest)
    if name == "mktemp":
        return f"/tmp/tmp.{UNUSED_PID}\n"
    if name == "cat" and rest in ([], ["-"]):
        return _heredoc_input(command, shell, depth, stdin_text)
    return "" if name in {":", "true"} else None


def _heredoc_input(command: CommandNode, shell: ShellState, depth: int, stdin_text: str | None) -> str | None:
    """Return the text of a here-document or here-string of the command, else the given standard input."""
    for redirect in command.redirects:
        if redirect.op == "<<<":
            stdin_text = expand_unsplit(redirect.target.parts, shell, depth + 1) + "\n"
        elif redirect.body is not None:
            stdin_text = expand_unsplit(redirect.body.parts, shell, depth + 1)
        elif redirect.op.startswith("<"):
            stdin_text = None
    return stdin_text


def is_in_own_temporary_folder(word: ShellWord, shell: ShellState) -> bool:
    """Return whether a file name is `$TMPDIR/…`: each session has a temporary folder of its own."""
    parts = [part for part in word.parts if not (isinstance(part, LiteralPart) and not part.text)]
    first, rest = next(iter(parts), None), parts[1:]
    return (
        isinstance(first, ParameterPart)
        and (first.name, first.op, first.prefix) == ("TMPDIR", "", "")
        and "TMPDIR" not in shell.variables
        and bool(rest)
        and all(isinstance(part, LiteralPart) and ".." not in part.text for part in rest)
    )


def expand_assignment(word: ShellWord, shell: ShellState) -> tuple[str, ShellValue]:
    """Return the name and value of `name=value`; the value is None if it is unknown."""
    first = word.parts[0]
    head = _ASSIGNMENT.match(first.text) if isinstance(first, LiteralPart) else None
    if not head:
        return re.split(r"[\[=+]", word.raw, maxsplit=1)[0], None
    assert isinstance(first, LiteralPart)
    name, plus = head.groups()
    rest = (LiteralPart(first.text[head.end() :]), *word.parts[1:])
    if isinstance(word.parts[-1], ArrayPart):
        args = [arg for item in word.parts[-1].words for arg in expand_word(item, shell)]
        return name, None if plus else tuple(arg.text for arg in args)
    text = expand_unsplit(rest, shell)
    if not plus:
        return name, text
    previous = shell.lookup(name)
    return name, previous + text if isinstance(previous, str) else None
