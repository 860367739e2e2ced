"""Programs that do something else on Ecliptic, which is meant, and why."""

ON_PURPOSE: dict[str, str] = {}
