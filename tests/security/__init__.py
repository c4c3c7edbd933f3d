"""Security: attacks on the HTTP API of `up`, kept closed. In process or on the loopback, and bounded."""
