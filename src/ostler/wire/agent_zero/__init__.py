"""The formats of an Agent Zero server: answers, events, tool requests, log items and error bodies."""
