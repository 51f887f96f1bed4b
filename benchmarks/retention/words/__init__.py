"""A benchmark of what a person says in a session: rules in many forms and languages, tasks, and talks between people.

The wordings are data: ``forms.toml``, ``languages/``, ``talks/``. They were written without sight of the summarizers and are
frozen by their SHA-256. ``python -m benchmarks.retention.words`` prints the tables.
"""
