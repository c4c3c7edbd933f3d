"""Benchmarks of this project that are not part of the package; `bayplan bench` is. The Makefile names each."""
