"""Base class of protocol tools, which have no description for a model."""

from functools import cached_property
from typing import TypeVar

import msgspec

from ostler.core.tools import ToolSpec
from ostler.tools.base_tool import BaseTool

P = TypeVar("P", bound=msgspec.Struct)


class ProtocolTool(BaseTool[P]):
    """Base class of tools that are called by a program, not by a model."""

    @cached_property
    def spec(self) -> ToolSpec:
        return ToolSpec(self.name, self.kind, "", self.accepts, self.effects, self.reach, self.runs_in)
