"""How far Ecliptic is Equinox: in its names, in what small programs do, in others' test suites.

``python -m conformance.report`` prints the table. Three levels, each a module or package:

- ``surface``: every public name, signature, field and error class, as data;
- ``parity``: small programs that run on both libraries in one process;
- ``downstream``: the test suites of other projects, unchanged.

Names of Equinox are taken from ``ecliptic.compat.equinox``, which is what programs get that say
``import equinox``.
"""
