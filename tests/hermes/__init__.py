"""Tests inside real Hermes Agent."""
