"""Tests with a small model on a llama.cpp server."""
