"""Loads the recording hook into every Python that xmem profile starts."""
