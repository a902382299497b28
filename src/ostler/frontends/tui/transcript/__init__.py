"""The transcript: entries backed by the records of the session, the rows that are visible, and their widget."""
