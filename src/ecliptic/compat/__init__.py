"""Ecliptic in the place of other libraries."""
