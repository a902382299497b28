"""`ostler tool`: lists tools and calls them from scripts, with the same tool host and policy as a model's calls."""

import json
import re
import sys
from argparse import Namespace
from collections.abc import Coroutine
from typing import Any, TypeVar

from ostler.cli.arguments import Parser, add_permission_options, add_workspace, run_options
from ostler.core.errors import UsageError
from ostler.core.tools import ToolCall, ToolResult, ToolSpec
from ostler.text.stderr import notify

T = TypeVar("T")
EPILOG = """\
exit status of a call: 0 success · 1 failure · 2 usage or settings error · 4 permission denied · 130 cancelled
"""
CALL_DESCRIPTION = """\
Make one call in its own session. `write` can replace a file that was not read before. Calls whose result only a later
call can use (a todo list, a background command, a part of a file) need `ostler tool calls`.
"""
EXAMPLE_LINE = '{"tool": "read", "arguments": {"path": "a.txt"}}'
CALLS_DESCRIPTION = f"""\
Read calls from standard input, one per line as {EXAMPLE_LINE}, and print each
result as a line of JSON. All calls share one session: later calls see what earlier ones read, planned or started, and
an existing file must be read before it is written.
"""
CALLS_EPILOG = """\
exit status: that of the first unsuccessful call, as for `ostler tool call`
"""
EXIT_STATUS = {"ok": 0, "failed": 1, "unknown": 1, "denied": 4, "cancelled": 130}


def main(arguments: list[str]) -> int:
    """Parse the arguments and run a subcommand."""
    parser = Parser("ostler tool", description="List, show or call tools without a model.", epilog=EPILOG)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list | schema NAME | call NAME JSON | calls")
    list_ = verbs.add_parser("list", help="list the tools")
    schema = verbs.add_parser("schema", help="print a tool's parameters as JSON Schema")
    schema.add_argument("name", help="a tool name or alias")
    call = verbs.add_parser(
        "call", help="make one call and print its result as JSON", description=CALL_DESCRIPTION, epilog=EPILOG
    )
    call.add_argument("name", help="a tool name or alias")
    call.add_argument(
        "json", nargs="?", default="", help="the arguments as a JSON object; - reads them from standard input"
    )
    calls = verbs.add_parser(
        "calls",
        help="make calls read from standard input, in one session",
        description=CALLS_DESCRIPTION,
        epilog=CALLS_EPILOG,
    )
    for subparser in (call, calls):
        add_permission_options(subparser)
    for subparser in (list_, schema, call, calls):
        add_workspace(subparser)
    args = _parse(parser, arguments)
    if args.verb == "list":
        return _list(args.cwd)
    if args.verb == "schema":
        return _schema(args.name, args.cwd)
    return _call(args) if args.verb == "call" else _calls(args)


def _parse(parser: Parser, arguments: list[str]) -> Namespace:
    """Parse the arguments; the JSON of a call may come before or after its flags."""
    args, extra = parser.parse_known_args(arguments)
    if args.verb == "call" and len(extra) == 1 and not args.json and not extra[0].startswith("--"):
        args.json = extra.pop()
    if extra:
        parser.error(f"unrecognized arguments: {' '.join(extra)}")
    return args


def _load_tools(cwd: str) -> dict[str, tuple[ToolSpec, bool]]:
    """Return every tool's spec by name, and whether models are offered it; of MCP servers the tools known so far."""
    from ostler.app.project import Project
    from ostler.app.tool_host import make_mcp_source, other_tools, project_tools

    project = Project.load(cwd)
    others = {tool.spec.name: (tool.spec, False) for tool in other_tools()}
    known = others | {tool.spec.name: (tool.spec, True) for tool in project_tools(project)}
    mcp = make_mcp_source(project, interactive=False)
    return {name: (tool.spec, True) for name, tool in mcp.tools().items()} | known if mcp else known


def _list(cwd: str) -> int:
    import textwrap  # imported late: only this command needs it

    for name, (spec, offered) in sorted(_load_tools(cwd).items(), key=lambda item: (not item[1][1], item[0])):
        sentence = re.split(r"[.:;]\s|\.$| \(", spec.description)[0]
        summary = textwrap.shorten(sentence, 90, placeholder=" …")
        sys.stdout.write(f"{name:<12} {summary}{'' if offered else ' (not offered here)'}\n")
    return 0


def _schema(name: str, cwd: str) -> int:
    spec, _ = _find_tool(name, _load_tools(cwd))
    record = {"name": spec.name, "kind": spec.kind, "description": spec.description, "schema": spec.schema}
    sys.stdout.write(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    return 0


def _find_tool(name: str, tools: dict[str, Any]) -> Any:
    from ostler.core.tool_aliases import resolve_tool_name
    from ostler.text.closest_name import closest_name

    found = resolve_tool_name(name, tools)
    if found is None:
        suggestion = closest_name(name, tools)
        hint = f"did you mean {suggestion}?" if suggestion else "list the tools with `ostler tool list`"
        raise UsageError(f"unknown tool {name!r}", hint=hint)
    return tools[found]


def _call(args: Namespace) -> int:
    if not _may_be_mcp_tool(args.name, args):
        _find_tool(args.name, _load_tools(args.cwd))
    raw = _read_arguments() if args.json == "-" else args.json
    call = ToolCall("call-1", args.name, _parse_object(raw), origin="protocol", raw=raw)
    result = _run_cancellable(_call_once(call, args))
    sys.stdout.write(_result_json(result) + "\n")
    return EXIT_STATUS[result.status]


def _may_be_mcp_tool(name: str, args: Namespace) -> bool:
    """Return whether a name begins like the tools of a configured MCP server, whose tools are known after its start."""
    from ostler.knowledge.trusted_settings import load_settings
    from ostler.settings.project_paths import workspace_path

    servers = load_settings(workspace_path(args.cwd), trust=args.trust).config.mcp
    if not servers:
        return False
    from ostler.mcp.tool_names import server_prefixes

    return any(name.startswith(prefix) for prefix in server_prefixes(list(servers)).values())


def _run_cancellable(work: Coroutine[Any, Any, T]) -> T:
    """Run to completion; SIGTERM and SIGHUP cancel like Ctrl-C, so that no process keeps running."""
    import asyncio

    from ostler.interaction.signals import STOP_SIGNALS, handled_signals

    async def run() -> T:
        task = asyncio.current_task()
        assert task is not None
        with handled_signals(dict.fromkeys(STOP_SIGNALS, lambda: task.cancelling() or task.cancel())):
            return await work

    try:
        return asyncio.run(run())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _read_arguments() -> str:
    """Read the arguments from standard input; the tool host rejects the surrogate escapes of invalid UTF-8."""
    from ostler.cli.stdin import read_stdin

    return read_stdin(errors="surrogateescape") if sys.stdin else ""


async def _call_once(call: ToolCall, args: Namespace) -> ToolResult:
    from ostler.app.manual_calls import open_manual_calls

    async with open_manual_calls(run_options(args), notify=notify) as manual_calls:
        return await manual_calls.call_once(call)


def _calls(args: Namespace) -> int:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError(
            "`ostler tool calls` reads from a pipe", hint=f"pipe in one call per line, such as {EXAMPLE_LINE}"
        )
    return _run_cancellable(_call_lines(args))


async def _call_lines(args: Namespace) -> int:
    """Run each line as it arrives and print its result. Return the exit status of the first unsuccessful call."""
    from ostler.app.manual_calls import open_manual_calls
    from ostler.cli.stdin import read_lines

    status, number = 0, 0
    async with open_manual_calls(run_options(args), notify=notify) as manual_calls:
        async for line in read_lines(sys.stdin.fileno()):
            number += 1
            call = _parse_line(line, number)
            result = await manual_calls.call(call) if isinstance(call, ToolCall) else call
            sys.stdout.write(_result_json(result) + "\n")
            sys.stdout.flush()
            status = status or EXIT_STATUS[result.status]
    return status


def _parse_line(line: str, number: int) -> ToolCall | ToolResult:
    """Return the call in a line, or a failed result if the line is not a call."""
    value = _parse_object(line)
    name = value.get("tool", value.get("name"))
    arguments = value.get("arguments", value.get("input"))
    if not isinstance(name, str):
        message = f"line {number} is not a call; write it as {EXAMPLE_LINE}"
        fault = UsageError(message, code="bad_line").fault
        return ToolResult(f"call-{number}", "failed", f"Error: {message}", fault=fault)
    if isinstance(arguments, dict):
        return ToolCall(f"call-{number}", name, arguments, origin="protocol")
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(f"call-{number}", name, _parse_object(raw), origin="protocol", raw=raw)


def _parse_object(raw: str) -> dict[str, Any]:
    """Return the JSON object, or an empty one for other text, which the tool host then tries to repair."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _result_json(result: ToolResult) -> str:
    import msgspec

    record: dict[str, Any] = {
        "call_id": result.call_id,
        "status": result.status,
        "for_model": result.for_model,
        "data": result.data,
        "fault": result.fault,
    }
    if result.images:
        record["images"] = [{"mime": image.mime, "data": image.data, "name": image.name} for image in result.images]
    return msgspec.json.encode(record).decode()
