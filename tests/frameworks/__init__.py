"""Tests that run the agent frameworks themselves."""
