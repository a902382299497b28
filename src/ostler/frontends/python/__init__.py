"""Sessions for programs: the conversation of the Python API."""
