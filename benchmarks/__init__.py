"""How fast it is: `bench_*.py` for ``make bench``, `report` for the figures of docs/performance.md."""
