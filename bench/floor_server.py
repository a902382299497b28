"""A bare Starlette application with an echo, to compare the server with. Prints its port."""

import socket

import uvicorn
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect


async def echo(websocket: WebSocket) -> None:
    await websocket.accept()
    try:
        while True:
            await websocket.send_text(await websocket.receive_text())
    except WebSocketDisconnect:
        return


def main() -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
    print(listener.getsockname()[1], flush=True)
    app = Starlette(routes=[WebSocketRoute("/", echo)])
    config = uvicorn.Config(
        app, log_config=None, lifespan="off", ws="websockets-sansio", ws_per_message_deflate=False, ws_max_queue=4
    )
    uvicorn.Server(config).run([listener])


if __name__ == "__main__":
    main()
