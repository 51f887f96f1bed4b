"""Shared test code: conversations, servers, strategies with random options."""
