"""`ostler serve`: sessions over HTTP and WebSocket, whose tools run on the clients' machines."""
