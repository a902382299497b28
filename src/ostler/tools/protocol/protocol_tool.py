"""What a protocol tool is declared with: no text for a model, because none is ever told of it."""

from functools import cached_property
from typing import TypeVar

import msgspec

from ostler.core.tools import ToolSpec
from ostler.tools.base_tool import BaseTool

P = TypeVar("P", bound=msgspec.Struct)


class ProtocolTool(BaseTool[P]):
    """A tool whose caller is a program that knows the protocol."""

    @cached_property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.kind, "", self.accepts, self.effects, self.reach)
