"""Mooring: the Kubernetes scheduler as a Python library.

What lives here: the version. The folders below hold everything else; start with
`mooring.scheduler` to run one and with `mooring.framework` to extend one.
"""

__version__ = "0.1.0"
