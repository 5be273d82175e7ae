"""Speed and load measurements; run ``python -m benchmarks`` from a clone."""
