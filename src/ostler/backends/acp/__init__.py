"""A backend that is somebody's agent: a program of its own that speaks ACP over its standard streams."""
