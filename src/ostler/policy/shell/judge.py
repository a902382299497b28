"""The judge: looks a command up in every table that knows its name."""

import re
from collections.abc import Sequence

from ostler.policy import danger
from ostler.policy import danger_programs as programs
from ostler.policy.danger_subcommands import SUBCOMMANDS
from ostler.policy.shell import (
    archives,
    clouds,
    databases,
    feeders,
    files,
    git,
    interpreters,
    known,
    leaks,
    shells,
    strangers,
    tools,
    transfers,
    wrappers,
)
from ostler.policy.shell.args import HOLE
from ostler.policy.shell.call import Call, Handler
from ostler.policy.shell.dynamic import hides_option, names_only
from ostler.policy.shell.options import parse
from ostler.policy.shell.wraps import RUNNERS, Wrap

_HELP = frozenset({"--help", "--version", "-V", "-?"})
_HALTS = frozenset(name for name, why in danger.ALWAYS.items() if why == danger.HALTS)
_LOADER = re.compile(r"ld-(?:linux|musl|\d)[\w.-]*\.so|ld\.so")
_PACKAGE = re.compile(r"^npm:|(?<=\w)@[\w.^~-]+$")  # as package runners name programs
_VERSIONED = re.compile(r"([a-z+]+?)[-_]?\d[\d.]*(?:\.exe)?")
_TABLES = (
    files.HANDLERS,
    archives.HANDLERS,
    transfers.HANDLERS,
    shells.HANDLERS,
    wrappers.HANDLERS,
    feeders.HANDLERS,
    interpreters.HANDLERS,
    tools.HANDLERS,
    tools.MORE,
    clouds.HANDLERS,
    databases.HANDLERS,
    git.HANDLERS,
)
_WINDOWS = frozenset({"schtasks", "sc"})
_DASHED_VERBS = frozenset({"--remove", "--remove-all", "--set", "--install", "--del", "--merge"})
_FLAGS = frozenset(danger.listed("-y -q --user --system --global --force --yes --now --quiet --verbose --debug"))
_REHEARSAL = frozenset(
    {"--dry-run", "--dry-run=client", "--dry-run=server", "--dry-run=true", "--dryrun", "--assumeno"}
)
_SIMULATES = frozenset(danger.listed("apt apt-get aptitude brew nala"))
_SIMULATION = frozenset(danger.listed("-s --simulate --just-print --no-act --recon -n"))
_TAKES_ANY_WORD = frozenset({"defaults", "service"})  # and so `--help` for a name
_RUNS = frozenset(danger.listed("run exec dlx shell run-script ssh debug rsh"))
_GNU = frozenset(  # as they are called where the system has others
    danger.listed(
        "rm mv chmod chown chgrp dd truncate shred ln unlink rmdir cp install tee sed awk tar find xargs split csplit"
        " sort uniq shuf env timeout nice nohup stdbuf"
    )
)
_SAME = {
    "podman": "docker",
    "nerdctl": "docker",
    "docker-compose": "docker",
    "oc": "kubectl",
    "tofu": "terraform",
    "pip3": "pip",
    "valkey-cli": "redis-cli",
    "keydb-cli": "redis-cli",
    "terragrunt": "terraform",
}


def judge(call: Call) -> str:
    """Why a command must be asked for; empty when it is ordinary."""
    if len(call.args) == 1 and _is_help(call):
        return ""
    call.name = _known(call.name)
    handlers, operands = _handlers(call.name), _operands(call)
    if (known.has_verbs(call.name) or call.name in SUBCOMMANDS) and _only_tells(call, operands[1]):
        return ""
    reasons = [_always(call), hides_option(call), leaks.secret(call), _writes(call, operands[0])]
    reasons += [handler(call) for handler in handlers]
    if not handlers:
        reasons.append(strangers.judge(call))
    elif call.name in RUNNERS:
        reasons.append(_of_runner(call))
    if call.walk.written and (not handlers or call.name in programs.READS_BY_ITSELF):
        reasons.append(strangers.made_here(call))
    if call.name.startswith("git-"):
        reasons.append(git.git_verb(call, call.name.removeprefix("git-"), call.args))
    elif _LOADER.match(call.name):
        reasons.append(wrappers.unwrap(call, Wrap("", ("library-path", "preload", "argv0", "audit")), call.args))
    for reason in (*reasons, _subcommand(call, *operands), _option(call)):
        if reason:
            return f"{call.name}: {reason}"
    if call.path.startswith("/etc/init.d/"):
        call.run_texts("service", call.name, *call.texts())
    why = _own_script(call) if "/" in call.path else ""
    if not why and not call.stranger:
        call.stranger = known.stranger(call, bool(handlers), operands)
    return why


def _writes(call: Call, operands: list[str]) -> str:
    """Why a program that is driven by a verb must be asked for: it names a file that is there, to write to."""
    driven = known.has_verbs(call.name) or call.name in programs.MANAGERS
    if not driven or call.name in git.HANDLERS:  # git has options of its own for this
        return ""
    return strangers.output(call) or strangers.fetched(call, operands)


def _is_help(call: Call) -> bool:
    """Whether a lone argument asks for help; `-h` stops the machine where that is what a program is for."""
    word = call.args[0].text
    return word in _HELP or (word == "-h" and call.name not in _HALTS)


def _only_tells(call: Call, operands: list[str]) -> bool:
    """Whether a program that is driven by a verb only says how it is used, or what it would do."""
    texts = call.texts()
    if not texts or "--" in texts or _runs_another(call.name, operands):
        return False
    if call.name in git.HANDLERS and texts[0][:1] == "-":  # which may set what git runs
        return False
    if texts[-1] == "--help" and texts[0][:1] != "-" and call.name not in _TAKES_ANY_WORD:
        return True
    return bool(_REHEARSAL & set(texts)) or (call.name in _SIMULATES and bool(_SIMULATION & set(texts)))


def _runs_another(name: str, operands: list[str]) -> bool:
    """Whether the verb is one behind which another command stands."""
    subs = RUNNERS[name][0] if name in RUNNERS else ()
    return not _RUNS.isdisjoint(operands[:1]) or any(operands[: len(s.split())] == s.split() for s in subs)


def _of_runner(call: Call) -> str:
    """A second look at programs that run others, where they do something else."""
    verb = strangers.verb(call)
    if verb in {"exec", "x", "dlx"} or (verb == "run" and call.name not in {"npm", "yarn", "pnpm", "bun"}):
        return ""
    if strangers.takes_packages(call):
        return ""
    return strangers.hands_on(call) if call.name in programs.MANAGERS else strangers.deletes(call)


def _always(call: Call) -> str:
    """Why a command must be asked for by its name, or by its name and the shape of its arguments."""
    if call.name in danger.WHEN:
        why, shapes = danger.WHEN[call.name]
        words = iter(call.texts())
        return why if all(any(re.fullmatch(s, word, re.DOTALL) for word in words) for s in shapes.split(" ")) else ""
    why = danger.ALWAYS.get(call.name, "")
    looks = danger.LOOKS.get(call.name) if why else None
    return "" if looks is not None and re.fullmatch(looks, " ".join(call.texts())) else why


def _handlers(name: str) -> list[Handler]:
    return [table[name] for table in _TABLES if name in table]


def _is_known(name: str) -> bool:
    return any(name in table for table in (danger.ALWAYS, danger.WHEN, SUBCOMMANDS, *_TABLES))


def _known(name: str) -> str:
    """The name the tables know: without version, case or suffix."""
    if _is_known(name):
        return name
    if name.startswith(("mkfs.", "fsck.", "newfs_")):
        return name[:4]
    if name[:1] == "g" and name[1:] in _GNU:
        return name[1:]
    name = _PACKAGE.sub("", name)
    found = _VERSIONED.fullmatch(name)
    for other in (name, found.group(1) if found else "", name.lower(), name.removesuffix(".exe")):
        if other and _is_known(other):
            return other
    return name


def _subcommand(call: Call, every: list[str], certain: list[str]) -> str:
    lines = SUBCOMMANDS.get(_SAME.get(call.name, call.name), ())
    if certain[:1] == [HOLE] and (lines or call.name in programs.WITH_VERB):
        return "what it shall do is known only when it runs"
    guessed = [word.replace(HOLE, "*") for word in certain]
    for wanted, why in lines:
        if _matches(every, wanted) or _matches(certain, wanted):
            return f"{' '.join(wanted)} {why}"
        if _matches(guessed, wanted):
            return "what it shall do is known only when it runs"
    return ""


def _matches(words: list[str], wanted: Sequence[str]) -> bool:
    """Whether words begin as wanted; a star fits any word, and at the end of one any ending."""
    return len(words) >= len(wanted) and all(
        word in {pattern, "*"} or (pattern[-1] == "*" and word.startswith(pattern[:-1]))
        for word, pattern in zip(words, wanted, strict=False)
    )


def _operands(call: Call) -> tuple[list[str], list[str]]:
    """The operands, read twice: as if no option took a value, and as if each one did; a lone hole is a word unknown."""
    every: list[str] = []
    after_options: list[str] = []
    before = ""
    for arg in call.args:
        text = arg.text.lower() if call.name.endswith("-cli") or call.name in _WINDOWS else arg.text
        text = text if not arg.opens_unknown else "…" if names_only(arg) else HOLE
        if not text.startswith("-") or text in _DASHED_VERBS:
            every.append(text)
            if not before.startswith("-") or "=" in before or before in _FLAGS:
                after_options.append(text)
        before = text
    return every, after_options


def _option(call: Call) -> str:
    spec = danger.OPTIONS.get(call.name)
    if not spec:
        return ""
    letters, longs, *valued = spec
    options = parse(call.args, *valued)
    return "the options change or delete something" if options.has(*letters, *longs) else ""


def _own_script(call: Call) -> str:
    """A program that this very line has written is judged by its text."""
    from ostler.policy.shell.args import Arg

    try:
        text = call.wrote(Arg(call.path))
    except KeyError:
        return ""
    if text is None:
        return "runs a program that this very line writes"
    shebang = re.match(r"#!\s*(?:/usr/bin/env\s+)?(\S+)", text)
    call.run_texts(shebang.group(1) if shebang else "sh", call.path)
    return ""
