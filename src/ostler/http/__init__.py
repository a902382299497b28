"""The HTTP/1.1 and server-sent events client: connections, TLS, proxies, bodies."""
