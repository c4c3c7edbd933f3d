"""Testing: builders, fakes and checks for tests of plugins.

Shipped with the package, so that plugin authors can use it. May enter: `api`, `table`, `framework`, `config`,
`cluster.memory`, and `runtime` for the checks. Must not happen: being imported by non-test code.
"""
