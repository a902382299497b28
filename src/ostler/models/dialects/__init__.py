"""Dialects: ways to call tools in the text of a reply when the API's own calls are not used."""
