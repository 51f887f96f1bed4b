"""Benchmarks: `bench_*.py` for ``make bench``, `report` for the figures of docs/performance.md, and others."""
