"""Whoever thinks: the engine, an Ostler server, an ACP agent, Agent Zero. Siblings never meet."""
