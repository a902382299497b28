"""`ostler tool`: the tools as a script sees them, each call through the same door and policy as a model's."""

import json
import re
import sys
from argparse import Namespace
from collections.abc import Coroutine
from typing import Any, TypeVar

from ostler.app.options import RunOptions
from ostler.cli.arguments import Parser, add_grants, add_workspace
from ostler.vocabulary.errors import UsageError
from ostler.vocabulary.tools import ToolCall, ToolResult, ToolSpec

T = TypeVar("T")
EPILOG = """\
exit status of a call: 0 ok · 1 it failed · 2 usage or settings · 4 refused for want of permission · 130 cancelled
"""
CALL = """\
Make one call, a session of its own. A file that `write` is told to replace needs no reading before: the last word is
yours. What is there for later calls (a plan, a job, a piece of a file) needs `ostler tool calls`.
"""
LINE = '{"tool": "read", "arguments": {"path": "a.txt"}}'
CALLS = f"""\
Make the calls that come from a pipe, one a line as {LINE}, and print each result as a line
of JSON as soon as it is there. They are one session: what one call reads, plans or starts is there for the next, and
an existing file must be read before it is written.
"""
EACH = """\
exit status: that of the first call that was not ok, as for `ostler tool call`
"""
STATUS = {"ok": 0, "failed": 1, "unknown": 1, "denied": 4, "cancelled": 130}


def main(arguments: list[str]) -> int:
    """List the tools, show one's schema, or make one call."""
    parser = Parser("ostler tool", description="The tools, without a model.", epilog=EPILOG)
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="list | schema NAME | call NAME JSON | calls")
    listed = verbs.add_parser("list", help="the tools, one a line")
    shown = verbs.add_parser("schema", help="what a tool takes, as JSON Schema")
    shown.add_argument("name", help="a tool, by any of its names")
    called = verbs.add_parser(
        "call", help="make one call and print its result as JSON", description=CALL, epilog=EPILOG
    )
    called.add_argument("name", help="a tool, by any of its names")
    called.add_argument("json", nargs="?", default="", help="its arguments as a JSON object; - reads them from a pipe")
    piped = verbs.add_parser(
        "calls", help="make the calls that come from a pipe, all in one session", description=CALLS, epilog=EACH
    )
    for each in (called, piped):
        add_grants(each)
    for each in (listed, shown, called, piped):
        add_workspace(each)
    given = _parsed(parser, arguments)
    if given.verb == "list":
        return _list(given.cwd)
    if given.verb == "schema":
        return _schema(given.name, given.cwd)
    return _call(given) if given.verb == "call" else _calls(given)


def _parsed(parser: Parser, arguments: list[str]) -> Namespace:
    """The arguments, with the JSON of a call before or behind its flags."""
    given, extra = parser.parse_known_args(arguments)
    if given.verb == "call" and len(extra) == 1 and not given.json and not extra[0].startswith("--"):
        given.json = extra.pop()
    if extra:
        parser.error(f"unrecognized arguments: {' '.join(extra)}")
    return given


def _tools(cwd: str) -> dict[str, tuple[ToolSpec, bool]]:
    """Every tool's declaration, and whether a model is told of it."""
    from ostler.app.house import workspace
    from ostler.app.knowing import Knowledge
    from ostler.app.tools import builtin_tools, other_tools
    from ostler.app.trusting import load_settings

    place = workspace(cwd)
    settings = load_settings(place)
    offered = [*builtin_tools(settings), *Knowledge(str(place), settings).skill_tools()]
    others = {tool.spec.name: (tool.spec, False) for tool in other_tools()}
    return others | {tool.spec.name: (tool.spec, True) for tool in offered}


def _list(cwd: str) -> int:
    for name, (spec, offered) in sorted(_tools(cwd).items(), key=lambda item: (not item[1][1], item[0])):
        told = re.split(r"[.:;]\s|\.$| \(", spec.description)[0][:90]
        sys.stdout.write(f"{name:<12} {told}{'' if offered else ' (not offered here)'}\n")
    return 0


def _schema(name: str, cwd: str) -> int:
    spec, _ = _found(name, _tools(cwd))
    told = {"name": spec.name, "kind": spec.kind, "description": spec.description, "schema": spec.schema}
    sys.stdout.write(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    return 0


def _found(name: str, tools: dict[str, Any]) -> Any:
    from ostler.text.names import nearest
    from ostler.vocabulary.tool_names import find_name

    found = find_name(name, tools)
    if found is None:
        near = nearest(name, tools)
        hint = f"did you mean {near}?" if near else "`ostler tool list` shows those there are"
        raise UsageError(f"there is no tool {name!r}", hint=hint)
    return tools[found]


def _call(given: Namespace) -> int:
    _found(given.name, _tools(given.cwd))
    raw = _piped() if given.json == "-" else given.json
    call = ToolCall("call-1", given.name, _object(raw), origin="protocol", raw=raw)
    result = _run(_alone(call, given))
    sys.stdout.write(_told(result) + "\n")
    return STATUS[result.status]


def _run(work: Coroutine[Any, Any, T]) -> T:
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


def _piped() -> str:
    """All of the pipe; bytes that are no text stay as halves of characters, which the door refuses."""
    return sys.stdin.buffer.read().decode("utf-8", "surrogateescape") if sys.stdin else ""


async def _alone(call: ToolCall, given: Namespace) -> ToolResult:
    from ostler.app.by_hand import by_hand

    async with by_hand(_options(given), say=_say) as hand:
        return await hand.call_alone(call)


def _calls(given: Namespace) -> int:
    if sys.stdin is None or sys.stdin.isatty():
        raise UsageError("there is no pipe to read calls from", hint=f"write them one a line, such as {LINE}")
    return _run(_each(given))


async def _each(given: Namespace) -> int:
    """Each line as it comes, its result as soon as it is there; the exit status is that of the first that failed."""
    from ostler.app.by_hand import by_hand
    from ostler.cli.piped import lines

    status, number = 0, 0
    async with by_hand(_options(given), say=_say) as hand:
        async for line in lines(sys.stdin.fileno()):
            number += 1
            call = _line_call(line, number)
            result = await hand.call(call) if isinstance(call, ToolCall) else call
            sys.stdout.write(_told(result) + "\n")
            sys.stdout.flush()
            status = status or STATUS[result.status]
    return status


def _line_call(line: str, number: int) -> ToolCall | ToolResult:
    """The call that a line is, or why it is none."""
    value = _object(line)
    name = value.get("tool", value.get("name"))
    arguments = value.get("arguments", value.get("input"))
    if not isinstance(name, str):
        told = f"line {number} is no call; write it as {LINE}"
        return ToolResult(f"call-{number}", "failed", f"Error: {told}", fault=UsageError(told, code="bad_line").fault)
    if isinstance(arguments, dict):
        return ToolCall(f"call-{number}", name, arguments, origin="protocol")
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ToolCall(f"call-{number}", name, _object(raw), origin="protocol", raw=raw)


def _options(given: Namespace) -> RunOptions:
    return RunOptions(
        cwd=given.cwd,
        write=given.write or given.yolo,
        yolo=given.yolo,
        allow=tuple(given.allow),
        profile=given.profile or "",
        trust=given.trust_project,
    )


def _say(line: str) -> None:
    print(f"ostler: {line}", file=sys.stderr)


def _object(raw: str) -> dict[str, Any]:
    """The arguments, or nothing when they are no JSON object: the door then looks at the text itself."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _told(result: ToolResult) -> str:
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
