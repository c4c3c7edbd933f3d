"""Conformance: the recorded decisions of kube-scheduler with their runners, one module per family of cases.

`cases.py` is for placements, `long_run.py`, `pod_groups.py`, `config.py`, `hints.py` and `queue.py` for the others; the
commands are `cli.py` (`make conformance`) and `counterfactuals.py` (`make counterfactuals`).
"""
