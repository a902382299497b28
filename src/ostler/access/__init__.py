"""What a session may do: the policy of settings and flags, and the active agent, mode and profile."""
