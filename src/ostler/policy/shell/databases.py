"""Databases: the clients that change or drop what is in them, and the frameworks that empty them."""

import re

from ostler.policy.danger import listed
from ostler.policy.shell import snippets, sql, strangers
from ostler.policy.shell.args import HOLE, Arg
from ostler.policy.shell.call import NO_FEED, Call, Handler
from ostler.policy.shell.options import parse

_UNKNOWN_SQL = "runs SQL that is known only when it runs"


def _sqlite(call: Call) -> str:
    options = parse(
        [Arg(arg.text.replace("-", "--", 1) if re.match(r"-\w\w", arg.text) else arg.text) for arg in call.args],
        "",
        ("cmd", "init", "separator", "newline", "nullvalue"),
    )
    texts = [arg.text for arg in [*options.values("cmd"), *options.operands[1:]]]
    if call.feed.kind == "text":
        texts.append(call.feed.text)
    if any(not text.strip(HOLE + " ") for text in texts):
        return _UNKNOWN_SQL
    if any(sql.sqlite_runs(text) for text in texts):
        return "sqlite3 runs a program or writes a file"
    return "changes a database" if any(sql.changes(text) for text in texts) else ""


def _sql_client(call: Call) -> str:
    options = parse(call.args, "cehpPuUdDfoLvSTHtqQ", _CLIENT_LONGS)
    given = options.values("c", "e", "q", "Q", "command", "execute", "query")
    if any(not arg.text.strip(HOLE + " ") for arg in given):
        return _UNKNOWN_SQL
    texts = [*call.texts(), call.feed.text if call.feed.kind == "text" else ""]
    for pager in options.values("pager"):
        call.text(pager.text, NO_FEED)
    if any(sql.client_runs(text) for text in texts):
        return "the database client runs a program or writes a file"
    if any(sql.changes(text) for text in texts):
        return "changes a database"
    return call.overwrites_any(options.values("o", "L", "output", "log-file", "tee")) or strangers.deletes(call)


_CLIENT_LONGS = listed("command execute query host port username dbname file output log-file pager tee")


def _mongo(call: Call) -> str:
    words = re.compile(
        r"(?:drop|delete|remove|update|replace|shutdown|rename|save|bulkWrite|findAndModify|findOneAnd|run|exec"
        r"|fsync)\w*\s*\(",
        re.IGNORECASE,
    )
    texts = [arg.text for arg in parse(call.args, "upf", ("eval", "host", "port")).values("eval")]
    texts += [call.feed.text] if call.feed.kind == "text" else []
    if any(not text.strip(HOLE + " ") for text in texts):
        return "runs a program text that is known only when it runs"
    return "changes a database" if any(words.search(text) for text in texts) else ""


def _redis(call: Call) -> str:
    for line in call.feed.text.splitlines() if call.feed.kind == "text" else ():
        call.run_texts("redis-cli", *line.split())
    return ""


def _framework(call: Call) -> str:
    """Tools of web frameworks that empty a database, or run program text."""
    texts = [arg.text for arg in call.args if not arg.text.startswith("-")]
    if call.name in {"python", "python3", "php"}:
        if not (texts[:1] and texts[0].endswith(("manage.py", "artisan"))):
            return ""
        texts = texts[1:]
    if texts[:1] == ["help"]:
        return ""
    undone = texts[:1] == ["migrate"] and texts[2:3] == ["zero"]
    if undone or texts[:2] in (["migrate", "reset"], ["db", "reset"]) or "--force-reset" in call.texts():
        return "empties a database"
    code = texts[1:2] if texts[:1] in (["runner"], ["r"]) else strangers.code_texts(call)
    code = [text for text in code if re.search(r"[\s(\[{;.:]", text)]
    if why := next(filter(None, (snippets.judge("other", text, call) for text in code)), ""):
        return why
    if any(map(sql.changes, texts)):
        return "changes a database"
    if {"-n", "--dry-run"} & set(call.texts()):
        return ""
    if any(_EMPTIES.fullmatch(text) for text in texts[:3]):
        return "empties a database"
    return strangers.deletes(call) if call.name in {"prisma", "supabase", "sequelize"} else ""


_EMPTIES = re.compile(
    r"db:(?:drop|reset|purge|wipe|(?:schema|structure):load|migrate:(?:reset|undo|down)|seed:replant)\S*"
    r"|migrate:(?:fresh|reset|refresh|rollback)|ecto\.(?:drop|reset)"
    r"|flush|reset_db|sqlflush|destroy"
)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(("sqlite3", "sqlite", "sqlcipher"), _sqlite),
    **dict.fromkeys(
        listed(
            "psql mysql mariadb mycli duckdb usql pgcli litecli clickhouse clickhouse-client clickhouse-local"
            " sqlplus sqlcmd tsql"
            " isql cqlsh snowsql trino presto presto-cli hive beeline impala-shell spark-sql cockroach influx bq db2"
            " databricks"
        ),
        _sql_client,
    ),
    **dict.fromkeys(("mongo", "mongosh"), _mongo),
    **dict.fromkeys(("redis-cli", "valkey-cli", "keydb-cli"), _redis),
    **dict.fromkeys(
        ("rails", "rake", "mix", "prisma", "supabase", "sequelize", "sequelize-cli", "artisan"), _framework
    ),
    **dict.fromkeys(("python", "python3", "php", "manage.py", "django-admin"), _framework),
}
