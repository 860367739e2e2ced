"""Ecliptic in the place of other libraries."""

__all__ = []
