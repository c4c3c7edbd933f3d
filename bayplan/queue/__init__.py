"""Queue: when a pod is tried, and when it is retried.

Lives here: the scheduling queue with its four parts (active, backoff, unschedulable, in flight) and
the nominator. May enter: `api`, `framework`. Must not happen: judging whether a pod fits, waiting,
reading the machine's clock. Called by: `scheduler`.
"""
