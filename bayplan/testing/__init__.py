"""Testing: builders, checks and the recorded decisions of kube-scheduler, for tests of schedulers and plugins.

Shipped with the package, so that plugin authors can use it. May enter: `api`, `table`, `framework`,
`config`, `cluster.memory`; the case runner also `scheduler`. Must not happen: being imported by
non-test code.
"""
