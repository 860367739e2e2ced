"""What the stand-ins cost a program that does not use them."""

import subprocess
import sys


def test_ecliptic_does_not_import_them():
    program = (
        "import sys, ecliptic; print([m for m in sys.modules if m.startswith('ecliptic.compat')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"
