"""Peers: other packages, in environments of their own, and the proxy that records their calls."""
