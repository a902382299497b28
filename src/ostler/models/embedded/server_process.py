"""The child process that holds the embedded model: an OpenAI-compatible server on loopback until its input ends.

It runs apart and imports nothing else of Ostler. Its order is one line of JSON on standard input, where no other
process can read the key; its answer is one line on standard output: the address, or why there is none.
"""

import json
import os
import sys
from typing import Any


def main() -> None:
    """Serve; whoever holds the other end of standard input decides how long."""
    answer = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what the library prints must not look like an answer
    order = json.loads(sys.stdin.readline())
    try:
        server = _start_server(order)
    except Exception as error:
        answer.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")
        os._exit(1)
    answer.write(json.dumps({"address": server.listening_address}) + "\n")
    sys.stdin.read()
    os._exit(0)  # the library's threads would take their time


def _start_server(config: dict[str, Any]) -> Any:
    sys.path += [config["runtime"]] if config["runtime"] else []
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = config["weights"]
    params.model_alias = {config["name"]}
    params.n_ctx = config["context"]
    params.n_parallel = 1  # one conversation, whose prefix stays in the cache
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = config["threads"]
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [config["key"]]
    params.ui = params.endpoint_slots = params.warmup = False
    params.verbosity = 0
    return xllamacpp.Server(params)
