"""Entry point of the server process: an OpenAI-compatible server on loopback.

The process imports nothing else of Ostler. It reads its configuration as one line of JSON from standard input, where
no other process can read the key, and writes one line to standard output: the address or an error.
"""

import json
import os
import sys
from typing import Any

BATCH_TOKENS = 128


def main() -> None:
    """Run the server until standard input is closed."""
    answer = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # the library's output must not mix with the answer
    config = json.loads(sys.stdin.readline())
    try:
        server = _start_server(config)
    except Exception as error:
        answer.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")
        os._exit(1)
    answer.write(json.dumps({"address": server.listening_address}) + "\n")
    sys.stdin.read()
    os._exit(0)  # without waiting for the library's threads


def _start_server(config: dict[str, Any]) -> Any:
    sys.path += [config["runtime"]] if config["runtime"] else []
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = config["weights"]
    params.model_alias = {config["name"]}
    params.n_ctx = config["context"]
    params.n_parallel = 1  # one conversation, so that its prefix stays cached
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = config["threads"]
    params.hostnames = ["127.0.0.1"]
    params.port = config["port"]
    params.api_keys = [config["key"]] if config["key"] else []
    params.n_batch = BATCH_TOKENS  # the progress is reported after each batch
    params.cors_origins = "http://localhost"  # web pages must not use the server
    if config["states"]:
        params.slot_save_path = config["states"]
    params.ui = params.endpoint_slots = params.warmup = False
    params.verbosity = 0
    return xllamacpp.Server(params)
