"""What the user's files tell the agent: rules, skills, commands, agents, hooks, checks. Nothing here runs code."""
