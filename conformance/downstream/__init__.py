"""The test suites of other projects, run on Ecliptic in the place of Equinox."""
