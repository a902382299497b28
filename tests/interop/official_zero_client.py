"""Runs the official Agent Zero client without its screen: `python official_zero_client.py SOURCE URL FOLDER`.

Sends one prompt, answers the operations of the server in FOLDER, and prints what it saw as JSON.
"""

import asyncio
import json
import sys


async def main(source: str, url: str, folder: str) -> None:
    sys.path.insert(0, f"{source}/src")
    from agent_zero_cli.client import A0Client
    from agent_zero_cli.connection import validate_capabilities
    from agent_zero_cli.remote_exec import RemoteExecManager
    from agent_zero_cli.remote_files import RemoteFileUtility

    client, files, commands = A0Client(url), RemoteFileUtility(scan_root=folder), RemoteExecManager(cwd=folder)
    seen: list[dict[str, object]] = []
    complete = asyncio.Event()

    def on_complete(data: dict[str, object]) -> None:
        complete.set()

    client.on_context_event = seen.append
    client.on_context_snapshot = lambda data: seen.extend(data["events"])
    client.on_context_complete = on_complete
    client.on_file_op, client.on_exec_op = files.handle_file_op, commands.handle_exec_op
    validate_capabilities(await client.fetch_capabilities())
    await client.connect_websocket()
    hello = await client.send_hello(
        remote_files={"enabled": True, "write_enabled": True, "mode": "read_write"}, remote_exec={"enabled": True}
    )
    commands.set_exec_config(hello.get("exec_config"))
    context_id = await client.create_chat()
    await client.subscribe_context(context_id)
    tree = files.build_tree_snapshot()
    await client.send_remote_tree_update(tree.as_payload())
    await client.send_message("hello", context_id)
    await asyncio.wait_for(complete.wait(), 60)
    await asyncio.sleep(0.5)
    report = {
        "texts": [event["data"].get("text", "") for event in seen if event["event"] == "assistant_message"],
        "chats": len(await client.list_chats()),
        "projects": await client.get_projects(context_id),
        "presets": await client.get_model_presets(),
        "tokens": await client.get_token_status(context_id),
        "paused": await client.pause_agent(context_id),
    }
    await commands.close()
    await client.disconnect()
    print(json.dumps(report))


asyncio.run(main(*sys.argv[1:]))
