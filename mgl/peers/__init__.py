"""Peers: other packages, each in an environment of its own, and the proxy that records their calls."""
