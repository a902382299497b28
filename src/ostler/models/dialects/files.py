"""The files dialect: shows files as text before the prompt and expects edits in the text of the answer.

The edits are carried out by the engine. Calls that the model writes as text are recognized as in the text dialect.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from ostler.core.prompt import EmbeddedResource, ImageContent, PromptContent, ResourceLink, TextContent
from ostler.core.tools import ToolCall, ToolResult
from ostler.models.call_ids import CallIds
from ostler.models.dialects.history import to_text_history
from ostler.models.dialects.native import TextCallParser, known_tools
from ostler.models.dialects.quoted_calls import ShownTexts
from ostler.models.dialects.text import write_calls, write_results
from ostler.models.model_types import (
    AssistantMessage,
    ModelRequest,
    RequestMessage,
    SystemMessage,
    ToolResultsMessage,
    UserMessage,
)
from ostler.text.request_kind import asks_for_change, asks_for_removal, reports_fault

SHOWN_PREFIX = "shown-"
CORRECTION_TEMPERATURE = 0.5  # otherwise small models repeat the reply that failed
WHOLE_NOTE = "Write each file that must change: its path, then a code block with its complete new content."
# Fewer tokens, and fewer mistakes in copying, for files whose definitions can be merged.
PARTIAL_NOTE = (
    "Write each file that must change: its path, then a code block. Of a program, write only the functions and classes "
    "that are new or change, each complete; any other file completely."
)
# Small models repair code better if they name the fault first; other changes get worse by it.
CORRECTION_NOTE = "Write the file again, differently: its path, then a code block."
FAULT_NOTE = "Say in one sentence what is wrong. Below that, w"
_NUMBERED_LINE = re.compile(r"^ *\d+\t(.*)$")
_OTHER_PROGRAMS = (
    *(".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".vue", ".svelte", ".go", ".rs", ".java", ".kt", ".scala"),
    *(".c", ".h", ".cc", ".cpp", ".hpp", ".cs", ".php", ".swift", ".rb", ".sh"),
)
_FILE_TEXT = re.compile(r"[^\n]+\n`{3,}\n")
_BACKTICKS = re.compile(r"`{3,}")


class FilesDialect:
    """Sends no tools. Each turn begins with one message: the map, the files, then the prompt."""

    def __init__(self, aliases: Mapping[str, str]) -> None:
        self._aliases = aliases

    def encode_request(self, request: ModelRequest) -> ModelRequest:
        may_write = any(tool.name == "write" for tool in request.tools)
        messages = _merge_turns(request.history, with_notes=may_write)
        history = to_text_history(messages, write_calls, write_results)
        temperature = CORRECTION_TEMPERATURE if _is_correction(request.history) else request.temperature
        return msgspec.structs.replace(request, history=history, tools=(), temperature=temperature)

    def new_parser(self, request: ModelRequest, ids: CallIds, *, makes_api_calls: bool) -> TextCallParser:
        tools, aliases = known_tools(request.tools, self._aliases)
        return TextCallParser(tools, aliases, ids, ShownTexts(request.history), tags_only=True)


def _is_correction(history: Sequence[RequestMessage]) -> bool:
    """Return whether the request asks the model to correct its last reply."""
    replies = [entry for entry in history[-2:-1] if isinstance(entry, AssistantMessage)]
    return bool(replies) and isinstance(history[-1], SystemMessage)


def _merge_turns(history: Sequence[RequestMessage], *, with_notes: bool) -> list[RequestMessage]:
    """Join each prompt with the files and notes that follow it, and notes between replies with each other.

    With `with_notes`, prompts that ask for a change end with a note on the format of the answer.
    """
    messages: list[RequestMessage] = []
    shown: list[str] = []
    prompt: tuple[PromptContent, ...] = ()
    calls: dict[str, ToolCall] = {}
    for entry in (*history, None):
        if isinstance(entry, SystemMessage):
            shown.append(entry.text)
        elif isinstance(entry, AssistantMessage) and entry.message.id.startswith(SHOWN_PREFIX):
            calls = {call.id: call for call in entry.message.calls}
        elif isinstance(entry, ToolResultsMessage) and calls:
            shown += _file_texts(entry.results, calls)
            calls = {}
        else:
            if shown or prompt:
                messages.append(_joined(shown, prompt, with_note=with_notes))
            shown, prompt = [], ()
            if isinstance(entry, UserMessage):
                prompt = entry.blocks
            elif entry is not None:
                messages.append(entry)
    return messages


def _joined(shown: Sequence[str], prompt: Sequence[PromptContent], *, with_note: bool) -> UserMessage:
    """Return one message, with the prompt last: small models forget what they read first."""
    text = "\n".join(map(_to_text, prompt))
    note = CORRECTION_NOTE if not prompt and "code block" not in "".join(shown) else ""
    note = _format_note(text, shown) if asks_for_change(text) else note
    texts = [*shown, text, note if with_note else ""]
    return UserMessage((TextContent("\n\n".join(text for text in texts if text)),))


def _format_note(prompt: str, shown: Sequence[str]) -> str:
    """Return the note on the format of the answer: definitions, or whole files where these cannot be merged well."""
    paths = [text.partition("\n")[0] for text in shown if _FILE_TEXT.match(text)]
    is_partial = not any(path.endswith(_OTHER_PROGRAMS) for path in paths) and not asks_for_removal(prompt)
    note = PARTIAL_NOTE if is_partial else WHOLE_NOTE
    return FAULT_NOTE + note[1:] if reports_fault(prompt) else note


def _to_text(block: PromptContent) -> str:
    match block:
        case TextContent(text):
            return text
        case EmbeddedResource(uri, text):
            return show_file(uri.rpartition("://")[2], text)
        case ResourceLink(uri, name):
            return name or uri
        case ImageContent():
            return "[a picture]"


def _file_texts(results: Sequence[ToolResult], calls: Mapping[str, ToolCall]) -> list[str]:
    readable = (result for result in results if result.status == "ok" and result.call_id in calls)
    return [show_file(str(calls[result.call_id].arguments["path"]), _plain(result.for_model)) for result in readable]


def _plain(numbered: str) -> str:
    """Return the lines of a `read` result without their numbers and without its notes."""
    matches = map(_NUMBERED_LINE.match, numbered.split("\n"))
    return "\n".join(match[1] for match in matches if match)


def show_file(path: str, text: str) -> str:
    """Return a file as its path and a code block whose fence does not occur in it."""
    longest = max((len(ticks) for ticks in _BACKTICKS.findall(text)), default=2)
    fence = "`" * (longest + 1)
    return f"{path}\n{fence}\n{text}\n{fence}"
