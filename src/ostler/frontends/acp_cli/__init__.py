"""`ostler acp run` and `ostler acp replay`: prompts for an ACP agent from the command line."""
