"""Certificates: a self-signed certificate for tests, for 127.0.0.1 and localhost."""

from bayplan.cluster.certificates import Certificate, make_certificate

__all__ = ["Certificate", "make_certificate"]
