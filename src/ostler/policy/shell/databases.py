"""Handlers for database clients and frameworks that change or drop data."""

import re

from ostler.policy.danger_tables import split_names
from ostler.policy.shell import one_liners, sql, unknown_programs
from ostler.policy.shell.command_call import NO_STDIN, CommandCall, CommandHandler
from ostler.policy.shell.expanded_words import UNKNOWN_TEXT, ExpandedWord
from ostler.policy.shell.option_parser import parse_options
from ostler.policy.shell.program_table import group

_UNKNOWN_SQL = "runs SQL that is known only at run time"


def _sqlite(call: CommandCall) -> str:
    options = parse_options(
        [
            ExpandedWord(arg.text.replace("-", "--", 1) if re.match(r"-\w\w", arg.text) else arg.text)
            for arg in call.args
        ],
        "",
        ("cmd", "init", "separator", "newline", "nullvalue"),
    )
    texts = [arg.text for arg in [*options.values("cmd"), *options.operands[1:]]]
    if call.stdin.kind == "text":
        texts.append(call.stdin.text)
    if any(not text.strip(UNKNOWN_TEXT + " ") for text in texts):
        return _UNKNOWN_SQL
    if any(sql.has_sqlite_command(text) for text in texts):
        return "sqlite3 runs a program or writes a file"
    return "changes a database" if any(sql.changes_data(text) for text in texts) else ""


def _sql_client(call: CommandCall) -> str:
    options = parse_options(call.args, "cehpPuUdDfoLvSTHtqQ", _SQL_CLIENT_LONGS)
    statements = options.values("c", "e", "q", "Q", "command", "execute", "query")
    if any(not arg.text.strip(UNKNOWN_TEXT + " ") for arg in statements):
        return _UNKNOWN_SQL
    texts = [*call.arg_texts(), call.stdin.text if call.stdin.kind == "text" else ""]
    call.evaluate_texts(options.values("pager"), NO_STDIN)
    if any(sql.has_client_command(text) for text in texts):
        return "the database client runs a program or writes a file"
    if any(sql.changes_data(text) for text in texts):
        return "changes a database"
    return call.any_overwrite_reason(
        options.values("o", "L", "output", "log-file", "tee")
    ) or unknown_programs.deletion_reason(call)


_SQL_CLIENT_LONGS = split_names("command execute query host port username dbname file output log-file pager tee")


def _mongo(call: CommandCall) -> str:
    changing_methods = re.compile(
        r"(?:drop|delete|remove|update|replace|shutdown|rename|save|bulkWrite|findAndModify|findOneAnd|run|exec"
        r"|fsync)\w*\s*\(",
        re.IGNORECASE,
    )
    texts = [arg.text for arg in parse_options(call.args, "upf", ("eval", "host", "port")).values("eval")]
    texts += [call.stdin.text] if call.stdin.kind == "text" else []
    if any(not text.strip(UNKNOWN_TEXT + " ") for text in texts):
        return "runs code that is known only at run time"
    return "changes a database" if any(changing_methods.search(text) for text in texts) else ""


def _redis(call: CommandCall) -> str:
    for line in call.stdin.text.splitlines() if call.stdin.kind == "text" else ():
        call.evaluate_words("redis-cli", *line.split())
    return ""


def _framework(call: CommandCall) -> str:
    """Handle the command-line tools of web frameworks, which can empty a database or run code."""
    texts = [arg.text for arg in call.args if not arg.text.startswith("-")]
    if call.name in {"python", "python3", "php"}:
        if not (texts[:1] and texts[0].endswith(("manage.py", "artisan"))):
            return ""
        texts = texts[1:]
    if texts[:1] == ["help"]:
        return ""
    reverts_all = texts[:1] == ["migrate"] and texts[2:3] == ["zero"]
    if reverts_all or texts[:2] in (["migrate", "reset"], ["db", "reset"]) or "--force-reset" in call.arg_texts():
        return "empties a database"
    code = texts[1:2] if texts[:1] in (["runner"], ["r"]) else unknown_programs.code_texts(call)
    code = [text for text in code if re.search(r"[\s(\[{;.:]", text)]
    if reason := next(filter(None, (one_liners.danger_reason("other", text, call) for text in code)), ""):
        return reason
    if any(map(sql.changes_data, texts)):
        return "changes a database"
    if {"-n", "--dry-run"} & set(call.arg_texts()):
        return ""
    if any(_EMPTIES_DATABASE.fullmatch(text) for text in texts[:3]):
        return "empties a database"
    return unknown_programs.deletion_reason(call) if call.name in {"prisma", "supabase", "sequelize"} else ""


_EMPTIES_DATABASE = re.compile(
    r"db:(?:drop|reset|purge|wipe|(?:schema|structure):load|migrate:(?:reset|undo|down)|seed:replant)\S*"
    r"|migrate:(?:fresh|reset|refresh|rollback)|ecto\.(?:drop|reset)"
    r"|flush|reset_db|sqlflush|destroy"
)


HANDLERS: dict[str, CommandHandler] = {
    **dict.fromkeys(("sqlite3", "sqlite", "sqlcipher"), _sqlite),
    **dict.fromkeys(group("sql-clients"), _sql_client),
    **dict.fromkeys(("mongo", "mongosh"), _mongo),
    **dict.fromkeys(("redis-cli", "valkey-cli", "keydb-cli"), _redis),
    **dict.fromkeys(
        ("rails", "rake", "mix", "prisma", "supabase", "sequelize", "sequelize-cli", "artisan"), _framework
    ),
    **dict.fromkeys(("python", "python3", "php", "manage.py", "django-admin"), _framework),
}
