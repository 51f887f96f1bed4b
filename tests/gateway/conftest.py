"""Files that pytest does not collect."""

collect_ignore = ["aider_turns.py"]
"""A program that `test_agents` runs in aider's own environment; pytest would import it to look for doctests."""
