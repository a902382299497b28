"""Backend for an Ostler server, which runs the loop; the tools run here."""
