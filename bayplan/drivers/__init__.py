"""Drivers: the event loops and threads that run a scheduler.

Lives here: `loop_driver.py` (the asyncio loop of `bayplan up`), `kube_driver.py` and `core_thread.py` (network loop and
scheduling thread of `bayplan run`). The loop of a simulation is in `sim`. May enter: everything up to `scheduler`. Must
not happen: a decision about a pod. Called by: `cli`.
"""
