"""The face: a peer on standard streams, from the first frame to the end of the input."""

import asyncio
import signal

from ostler.faces.editor.agent import EditorAgent
from ostler.faces.editor.premises import Premises
from ostler.faces.editor.streams import StandardStreams
from ostler.vocabulary.seams import House
from ostler.wire.jsonrpc import Peer

CLOSING_SECONDS = 1.2
WRITING_SECONDS = 0.3
ENDING = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)


class EditorFace:
    """Serves one editor; ends when its input does, by a signal, or when nothing more can be made of its input."""

    def __init__(self, streams: StandardStreams, premises: Premises, version: str) -> None:
        self._streams = streams
        self._premises = premises
        self._version = version

    async def run(self, house: House) -> int:
        agent = EditorAgent(house, self._premises, self._version)
        agent.peer = Peer(self._streams.send, agent, serves=True)
        over = asyncio.Event()

        def feed(data: bytes) -> None:
            agent.peer.feed(data)
            if agent.peer.gone:
                over.set()

        self._streams.start(feed, over.set)
        loop = asyncio.get_running_loop()
        for number in ENDING:
            loop.add_signal_handler(number, over.set)
        await over.wait()
        broken = agent.peer.gone
        await asyncio.wait({asyncio.create_task(_close(agent))}, timeout=CLOSING_SECONDS)
        self._streams.finish(WRITING_SECONDS)
        if broken:
            self._premises.say(f"the editor broke the protocol: {broken}")
        return 1 if broken else 0


async def _close(agent: EditorAgent) -> None:
    """The turns first, so that their answers are still written."""
    await agent.aclose()
    await agent.peer.aclose()
