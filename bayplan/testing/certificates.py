"""Certificates: one for tests, made on the spot, for 127.0.0.1 and localhost, signed by itself."""

from ..cluster.certificates import Certificate, make_certificate

__all__ = ["Certificate", "make_certificate"]
