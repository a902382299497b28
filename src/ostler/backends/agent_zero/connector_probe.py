"""Finds out whether a server has a connector that can be used."""

from ostler.backends.agent_zero.connector import ConnectorTransport
from ostler.backends.agent_zero.connector_server import LOGIN_HINT, NO_SOCKET, ConnectorServer, ConnectorSettings
from ostler.backends.agent_zero.transport import TransportStart, TurnListener
from ostler.core.errors import BackendError


async def probe_connector(
    server: ConnectorServer,
    settings: ConnectorSettings,
    start: TransportStart,
    listener: TurnListener,
    *,
    has_key: bool,
) -> ConnectorTransport | None:
    """Return the transport, or None if the server has no connector that can be used. Raises `BackendError`.

    Without a login, a server that needs one is used over the message API, if there is a key for that.
    """
    capabilities = await server.capabilities()
    problem = capabilities.problem if capabilities else ""
    if capabilities and not problem and capabilities.needs_login:
        if not server.has_login and not has_key:
            raise BackendError(f"Agent Zero at {server.address} needs a login", code="auth", hint=LOGIN_HINT)
        if server.has_login:
            await server.log_in()
        else:
            problem = f"it needs a login; {LOGIN_HINT}"
    if capabilities is None or problem:
        if problem:
            listener.on_notice(f"the connector of {server.address} is not used: {problem}")
        await server.aclose()
        return None
    transport = ConnectorTransport(server, settings, start, listener, capabilities)
    try:
        await transport.open_socket()
    except BackendError as error:
        await server.aclose()
        if error.fault.code != NO_SOCKET or not has_key:
            raise
        listener.on_notice(f"the connector is not used: {error}", is_warning=True)
        return None
    await transport.load_choices()
    return transport
