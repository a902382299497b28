"""Loop plugins: small objects called at fixed points of the agent loop."""
