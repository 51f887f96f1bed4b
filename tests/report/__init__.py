"""Tests of the replay report in a browser."""
