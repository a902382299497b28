"""`ostler tool`: the tools as a script sees them, each call through the same door and policy as a model's."""

import json
import re
import sys
from argparse import Namespace
from collections.abc import Coroutine
from typing import Any, TypeVar

from ostler.app.run_options import RunOptions
from ostler.cli.arguments import Parser, add_permission_options, add_workspace
from ostler.core.errors import UsageError
from ostler.core.tools import ToolCall, ToolResult, ToolSpec

T = TypeVar("T")
EPILOG = """\
exit status of a call: 0 ok · 1 it failed · 2 usage or settings · 4 refused for want of permission · 130 cancelled
"""
CALL_DESCRIPTION = """\
Make one call, a session of its own. A file that `write` is told to replace needs no reading before: the last word is
yours. What is there for later calls (a plan, a job, a piece of a file) needs `ostler tool calls`.
"""
EXAMPLE_LINE = '{"tool": "read", "arguments": {"path": "a.txt"}}'
CALLS_DESCRIPTION = f"""\
Make the calls that come from a pipe, one a line as {EXAMPLE_LINE}, and print each result as a line
of JSON as soon as it is there. They are one session: what one call reads, plans or starts is there for the next, and
an existing file must be read before it is written.
"""
CALLS_EPILOG = """\
exit status: that of the first call that was not ok, as for `ostler tool call`
"""
EXIT_STATUS = {"ok": 0, "failed": 1, "unknown": 1, "denied": 4, "cancelled": 130}


def main(arguments: list[str]) -> int:
    """List the tools, show one's schema, or make one call."""
    parser = Parser("ostler tool", description="The tools, without a model.", epilog=EPILOG)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list | schema NAME | call NAME JSON | calls")
    listed = verbs.add_parser("list", help="the tools, one a line")
    shown = verbs.add_parser("schema", help="what a tool takes, as JSON Schema")
    shown.add_argument("name", help="a tool, by any of its names")
    called = verbs.add_parser(
        "call", help="make one call and print its result as JSON", description=CALL_DESCRIPTION, epilog=EPILOG
    )
    called.add_argument("name", help="a tool, by any of its names")
    called.add_argument("json", nargs="?", default="", help="its arguments as a JSON object; - reads them from a pipe")
    piped = verbs.add_parser(
        "calls",
        help="make the calls that come from a pipe, all in one session",
        description=CALLS_DESCRIPTION,
        epilog=CALLS_EPILOG,
    )
    for each in (called, piped):
        add_permission_options(each)
    for each in (listed, shown, called, piped):
        add_workspace(each)
    given = _parse(parser, arguments)
    if given.verb == "list":
        return _list(given.cwd)
    if given.verb == "schema":
        return _schema(given.name, given.cwd)
    return _call(given) if given.verb == "call" else _calls(given)


def _parse(parser: Parser, arguments: list[str]) -> Namespace:
    """The arguments, with the JSON of a call before or behind its flags."""
    given, extra = parser.parse_known_args(arguments)
    if given.verb == "call" and len(extra) == 1 and not given.json and not extra[0].startswith("--"):
        given.json = extra.pop()
    if extra:
        parser.error(f"unrecognized arguments: {' '.join(extra)}")
    return given


def _load_tools(cwd: str) -> dict[str, tuple[ToolSpec, bool]]:
    """Every tool's declaration, and whether a model is told of it."""
    from ostler.app.project_knowledge import ProjectKnowledge
    from ostler.app.session_manager import workspace_path
    from ostler.app.tool_host import builtin_tools, other_tools
    from ostler.app.trusted_settings import load_settings

    place = workspace_path(cwd)
    settings = load_settings(place)
    offered = [*builtin_tools(settings), *ProjectKnowledge(str(place), settings).skill_tools()]
    others = {tool.spec.name: (tool.spec, False) for tool in other_tools()}
    return others | {tool.spec.name: (tool.spec, True) for tool in offered}


def _list(cwd: str) -> int:
    for name, (spec, offered) in sorted(_load_tools(cwd).items(), key=lambda item: (not item[1][1], item[0])):
        told = re.split(r"[.:;]\s|\.$| \(", spec.description)[0][:90]
        sys.stdout.write(f"{name:<12} {told}{'' if offered else ' (not offered here)'}\n")
    return 0


def _schema(name: str, cwd: str) -> int:
    spec, _ = _find_tool(name, _load_tools(cwd))
    told = {"name": spec.name, "kind": spec.kind, "description": spec.description, "schema": spec.schema}
    sys.stdout.write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    return 0


def _find_tool(name: str, tools: dict[str, Any]) -> Any:
    from ostler.core.tool_aliases import resolve_tool_name
    from ostler.text.closest_name import closest_name

    found = resolve_tool_name(name, tools)
    if found is None:
        near = closest_name(name, tools)
        hint = f"did you mean {near}?" if near else "`ostler tool list` shows those there are"
        raise UsageError(f"there is no tool {name!r}", hint=hint)
    return tools[found]


def _call(args: Namespace) -> int:
    _find_tool(args.name, _load_tools(args.cwd))
    raw = _read_stdin() if args.json == "-" else args.json
    call = ToolCall("call-1", args.name, _parse_object(raw), origin="protocol", raw=raw)
    result = _run_cancellable(_call_once(call, args))
    sys.stdout.write(_result_json(result) + "\n")
    return EXIT_STATUS[result.status]


def _run_cancellable(work: Coroutine[Any, Any, T]) -> T:
    """To its end; SIGTERM and a closed terminal end it as Ctrl-C does, so that nothing of ours is left behind."""
    import asyncio
    import signal

    async def endable() -> T:
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, lambda: task.cancelling() or task.cancel())
        return await work

    try:
        return asyncio.run(endable())
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None


def _read_stdin() -> str:
    """All of the pipe; bytes that are no text stay as halves of characters, which the door refuses."""
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape") if sys.stdin else ""


async def _call_once(call: ToolCall, args: Namespace) -> ToolResult:
    from ostler.app.manual_calls import open_manual_calls

    async with open_manual_calls(_options(args), notify=_print_notice) as hand:
        return await hand.call_once(call)


def _calls(args: Namespace) -> int:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("there is no pipe to read calls from", hint=f"write them one a line, such as {EXAMPLE_LINE}")
    return _run_cancellable(_call_lines(args))


async def _call_lines(args: Namespace) -> int:
    """Each line as it comes, its result as soon as it is there; the exit status is that of the first that failed."""
    from ostler.app.manual_calls import open_manual_calls
    from ostler.cli.stdin import read_lines

    status, number = 0, 0
    async with open_manual_calls(_options(args), notify=_print_notice) as hand:
        async for line in read_lines(sys.stdin.fileno()):
            number += 1
            call = _parse_line(line, number)
            result = await hand.call(call) if isinstance(call, ToolCall) else call
            sys.stdout.write(_result_json(result) + "\n")
            sys.stdout.flush()
            status = status or EXIT_STATUS[result.status]
    return status


def _parse_line(line: str, number: int) -> ToolCall | ToolResult:
    """The call that a line is, or why it is none."""
    value = _parse_object(line)
    name = value.get("tool", value.get("name"))
    arguments = value.get("arguments", value.get("input"))
    if not isinstance(name, str):
        told = f"line {number} is no call; write it as {EXAMPLE_LINE}"
        return ToolResult(f"call-{number}", "failed", f"Error: {told}", fault=UsageError(told, code="bad_line").fault)
    if isinstance(arguments, dict):
        return ToolCall(f"call-{number}", name, arguments, origin="protocol")
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(f"call-{number}", name, _parse_object(raw), origin="protocol", raw=raw)


def _options(args: Namespace) -> RunOptions:
    return RunOptions(
        cwd=args.cwd,
        write=args.write or args.yolo,
        yolo=args.yolo,
        allow=tuple(args.allow),
        profile=args.profile or "",
        trust=args.trust_project,
    )


def _print_notice(line: str) -> None:
    print(f"ostler: {line}", file=sys.stderr)


def _parse_object(raw: str) -> dict[str, Any]:
    """The arguments, or nothing when they are no JSON object: the door then looks at the text itself."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _result_json(result: ToolResult) -> str:
    import msgspec

    told: dict[str, Any] = {
        "call_id": result.call_id,
        "status": result.status,
        "for_model": result.for_model,
        "data": result.data,
        "fault": result.fault,
    }
    if result.images:
        told["images"] = [{"mime": image.mime, "data": image.data, "name": image.name} for image in result.images]
    return msgspec.json.encode(told).decode()
