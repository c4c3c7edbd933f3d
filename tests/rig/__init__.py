"""Rig: the base of this project's tests, in addition to the builders of `bayplan.testing`.

Lives here: whole schedulers on a cluster in memory (`scenarios.py`), the runners of recorded decisions
(`conformance/`), API servers and schedulers as processes (`live/`), an API server on virtual time (`simulated/`), and
the mutants. May enter: all of `bayplan`. Called by: tests, `benchmarks/` and the Makefile.
"""
