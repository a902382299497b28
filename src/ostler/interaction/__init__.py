"""What every interactive frontend needs, without drawing: slash commands, completion, input, queue, approvals."""
