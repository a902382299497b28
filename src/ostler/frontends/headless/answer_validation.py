"""An answer that must be JSON of a given shape: the model is told, and asked again while its answer is not."""

import json
from typing import Any

from ostler.core.errors import UsageError

MAX_ATTEMPTS = 3
_MAX_SIZE = 256 * 1024


class AnswerValidator:
    """One shape and the answers given to it; `value` is the last one that fits."""

    def __init__(self, path: str) -> None:
        """Reads the JSON Schema of a file."""
        import fastjsonschema

        try:
            with open(path, "rb") as file:
                text = file.read(_MAX_SIZE + 1)
            if len(text) > _MAX_SIZE:
                raise ValueError(f"it has more than {_MAX_SIZE:,} bytes")
            self._schema = json.loads(text)
            if not isinstance(self._schema, dict):
                raise ValueError("it is no object")
            self._validate = fastjsonschema.compile(self._schema, handlers=_REFERENCE_HANDLERS)
        except OSError as error:
            raise UsageError(f"the schema {path} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError, fastjsonschema.JsonSchemaDefinitionException) as error:
            raise UsageError(f"the schema {path} is not a JSON Schema: {error}") from None
        self.value: Any = None
        self.error = ""
        self._attempts = 0

    def add_instructions(self, prompt: str) -> str:
        """The prompt, with the shape its answer must have."""
        schema = json.dumps(self._schema, ensure_ascii=False)
        rule = "Your final answer must be one JSON value that fits this JSON Schema, and nothing else"
        return f"{prompt}\n\n{rule}:\n{schema}"

    def retry_message(self, answer: str) -> str:
        """What to say to the model about its answer; empty when it fits, or was wrong too often."""
        self._attempts += 1
        self.error = self._validation_error(answer)
        if not self.error or self._attempts >= MAX_ATTEMPTS:
            return ""
        return f"Your answer does not fit: {self.error}. Answer again with the JSON value alone."

    def _validation_error(self, answer: str) -> str:
        import fastjsonschema

        try:
            value = json.loads(_strip_fence(answer[:_MAX_SIZE]))
            self._validate(value)
        except fastjsonschema.JsonSchemaValueException as error:
            return str(error.message)[:500]
        except (ValueError, RecursionError) as error:
            return f"it is no JSON ({error})"
        self.value = value
        return ""


def _strip_fence(answer: str) -> str:
    """Without the fence that models like to put around JSON."""
    text = answer.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") : -3]
    return text


def _reject_reference(uri: str) -> Any:
    raise ValueError(f"it refers to {uri}, and nothing is fetched")


_REFERENCE_HANDLERS = {scheme: _reject_reference for scheme in ("http", "https", "ftp", "file")}
