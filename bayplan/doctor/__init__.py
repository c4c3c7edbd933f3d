"""Doctor: reads a cluster once and lists the reasons why answers may differ from its scheduler.

Lives here: the facts of a cluster, which `live_facts.py` reads, and the checks that make findings of them, both in
`checks.py`. Checks are functions of facts, without I/O. Called by the command `doctor` and, for the findings that cost
no request, by every question about a live cluster.
"""
