"""Runs a real Agent Zero server, with Python 3.12 and its packages: `python zero_server_process.py SOURCE PORT`.

Packages for speech, browsers, embeddings and documents are replaced by empty modules, because they are large and only
used by features that the tests do not need.
"""

import importlib.abc
import importlib.machinery
import os
import runpy
import sys
import types

REPLACED = frozenset(
    (
        *("faiss", "whisper", "soundfile", "kokoro", "sentence_transformers", "torch", "langchain", "browser_use"),
        *("playwright", "unstructured", "unstructured_client", "langchain_unstructured", "newspaper", "pypdf"),
        *("duckduckgo_search", "pymupdf", "fitz", "pytesseract", "pdf2image", "boto3", "exchangelib", "imapclient"),
        *("docker", "paramiko"),
    )
)


class EmptyModule(types.ModuleType):
    """A module in which every name is a class."""

    __path__ = ()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        setattr(self, name, type(name, (Exception,), {}))
        return self.__dict__[name]


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        is_replaced = name.partition(".")[0] in REPLACED
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if is_replaced else None

    def create_module(self, spec):
        return EmptyModule(spec.name)

    def exec_module(self, module):
        pass


def main(source: str, port: str) -> None:
    sys.meta_path.append(Finder())
    sys.path.insert(0, source)
    os.chdir(source)
    sys.argv = ["run_ui.py", "--dockerized=true", "--host=127.0.0.1", f"--port={port}"]
    runpy.run_path("run_ui.py", run_name="__main__")


if __name__ == "__main__":
    main(*sys.argv[1:])
