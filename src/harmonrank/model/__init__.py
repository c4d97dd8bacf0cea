"""The ensemble network."""

from harmonrank.model.network import Network, NetworkConfig

__all__ = ["Network", "NetworkConfig"]
