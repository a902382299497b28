"""Permission policy as pure functions: rules, verdicts and the analysis of shell commands."""
