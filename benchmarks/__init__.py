"""Paired ratios against peers: ``python -m benchmarks``."""
