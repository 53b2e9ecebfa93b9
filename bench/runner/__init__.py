"""The measuring runner behind bench/run.py: see docs/measuring.md."""
