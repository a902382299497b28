"""The tools of the description: errors name them and their arguments, and no others can be requested."""

from collections.abc import Mapping

from ostler.core.tool_aliases import normalize_name, resolve_tool_name, tools_by_alias


class DescribedTools:
    """Tools with their arguments, by the names of the description. Without any, every tool can be requested."""

    def __init__(self, arguments: Mapping[str, str]) -> None:
        self._arguments = arguments
        self._names = {tools_by_alias()[normalize_name(name)]: name for name in arguments}

    def problem(self, tool: str) -> str:
        """Return why a tool cannot be requested, or an empty text."""
        if not self._names or resolve_tool_name(tool, self._names):
            return ""
        return f"there is no tool {tool!r:.60}; available: {', '.join(self._arguments)}"

    def explain(self, tool: str, error: str) -> str:
        """Return an error about arguments with those of the description."""
        name = self._names.get(resolve_tool_name(tool, self._names) or "", "")
        return f"{error.partition('; it takes ')[0]}; {name} takes {self._arguments[name]}" if name else error
