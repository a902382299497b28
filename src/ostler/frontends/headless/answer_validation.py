"""Validates the answer against `--output-schema` and asks the model to retry if it does not match."""

import json
from typing import Any

from ostler.core.errors import UsageError

MAX_ATTEMPTS = 3
_MAX_SIZE = 256 * 1024


class AnswerValidator:
    """Validates answers against a JSON Schema; `value` is the last one that matches."""

    def __init__(self, path: str) -> None:
        """Read the JSON Schema from a file. Raises `UsageError` if it cannot be used."""
        import fastjsonschema

        try:
            with open(path, "rb") as file:
                text = file.read(_MAX_SIZE + 1)
            if len(text) > _MAX_SIZE:
                raise ValueError(f"the file is larger than {_MAX_SIZE:,} bytes")
            self._schema = json.loads(text)
            if not isinstance(self._schema, dict):
                raise ValueError("it must be an object")
            self._validate = fastjsonschema.compile(self._schema, handlers=_REFERENCE_HANDLERS)
        except OSError as error:
            raise UsageError(f"the schema {path} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError, fastjsonschema.JsonSchemaDefinitionException) as error:
            raise UsageError(f"the schema {path} is not a JSON Schema: {error}") from None
        self.value: Any = None
        self.error = ""
        self._attempts = 0

    def add_instructions(self, prompt: str) -> str:
        """Return the prompt with instructions to answer according to the schema."""
        schema = json.dumps(self._schema, ensure_ascii=False)
        rule = "Your final answer must be only a JSON value that matches this JSON Schema"
        return f"{prompt}\n\n{rule}:\n{schema}"

    def retry_message(self, answer: str) -> str:
        """Return a message that asks for a retry; empty if the answer matches or there were too many attempts."""
        self._attempts += 1
        self.error = self._validation_error(answer)
        if not self.error or self._attempts >= MAX_ATTEMPTS:
            return ""
        return f"Your answer does not match: {self.error}. Reply with only the JSON value."

    def _validation_error(self, answer: str) -> str:
        import fastjsonschema

        try:
            value = json.loads(_strip_fence(answer[:_MAX_SIZE]))
            self._validate(value)
        except fastjsonschema.JsonSchemaValueException as error:
            return str(error.message)[:500]
        except (ValueError, RecursionError) as error:
            return f"it is not JSON ({error})"
        self.value = value
        return ""


def _strip_fence(answer: str) -> str:
    """Remove the code fence that models often put around JSON."""
    text = answer.strip()
    if text.startswith("```") and text.endswith("```") and "\n" in text:
        return text[text.index("\n") : -3]
    return text


def _reject_reference(uri: str) -> Any:
    raise ValueError(f"it refers to {uri}; external references are not supported")


_REFERENCE_HANDLERS = {scheme: _reject_reference for scheme in ("http", "https", "ftp", "file")}
