"""Tests on a local Ray cluster."""
