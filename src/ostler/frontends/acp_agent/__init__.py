"""The editor's face: Ostler as an ACP agent on standard streams."""
