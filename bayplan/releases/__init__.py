"""Releases: the facts in which releases of Kubernetes differ, and the position of every feature gate in each.

Lives here: the records of releases, the table of gates, the effects of both positions of a gate. May enter: `errors`,
nothing else of the package; every folder may import from here. Must not happen: a decision, or a look at an object.
Called by: code whose behaviour depends on a release, which reads one named fact or one gate.
"""
