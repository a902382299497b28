"""Backend that runs an external agent over the Agent Client Protocol."""
