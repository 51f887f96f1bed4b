"""A benchmark of conversations that were written by hand, each with the words that must survive.

``conversations/`` holds them as text files; `conversations.py` has their format. They were written without sight of the code
that is measured. ``python -m benchmarks.retention.handwritten`` prints the tables.
"""
