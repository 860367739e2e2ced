"""For the tests of what is built with Ecliptic."""

from ecliptic.testing._get_key import GetKey

__all__ = ["GetKey"]
