"""The backends: the built-in engine, external ACP agents, and a scripted one; they do not import each other."""
