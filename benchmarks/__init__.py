"""Benchmarks of this project that are not part of the package; `bayplan research bench` is. The Makefile names each."""
