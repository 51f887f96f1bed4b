"""A benchmark of what one compaction keeps: planted items, by kind and language, and what is wrong in what is kept.

The wordings are data, in ``wordings/``: those in ``dev`` are for development; those in ``judging`` were written by another
person and are frozen. ``python -m benchmarks.retention`` prints the tables.
"""
