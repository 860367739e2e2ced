"""What `import ecliptic` costs: no optional package, no device, nothing unexpected."""

import json
import os
import subprocess
import sys
import textwrap

import pytest

REQUIRED = {"jax", "jaxlib", "jaxtyping", "numpy", "typing_extensions", "wadler_lindig"}
OPTIONAL = {
    "beartype", "cloudpickle", "equinox", "flax", "IPython", "matplotlib", "optax", "orbax",
    "pandas", "pytest", "rich", "safetensors", "scipy", "sklearn", "torch", "tqdm", "treescope",
}  # fmt: skip


def _python(program: str, **environment: str) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def loaded() -> set[str]:
    """The modules that `import ecliptic` loads and `import jax` does not."""
    output = _python(
        """
        import sys, json
        import jax
        before = set(sys.modules)
        import ecliptic
        print(json.dumps(sorted(set(sys.modules) - before)))
        """
    )
    return set(json.loads(output))


def test_import_loads_the_package(loaded):
    assert "ecliptic" in loaded


def test_import_loads_no_optional_package(loaded):
    assert {name.partition(".")[0] for name in loaded} & OPTIONAL == set()


def test_import_loads_only_what_is_required(loaded):
    packages = {name.partition(".")[0] for name in loaded}
    assert packages - REQUIRED - set(sys.stdlib_module_names) == {"ecliptic"}


def test_import_starts_no_device():
    # A backend that does not exist fails as soon as anything asks for a device.
    output = _python(
        """
        import ecliptic, jax
        try:
            jax.devices()
        except RuntimeError:
            print("asked now for the first time")
        """,
        JAX_PLATFORMS="no_such_platform",
    )
    assert output.strip() == "asked now for the first time"


def test_import_warns_of_nothing():
    assert _python("import warnings; warnings.simplefilter('error'); import ecliptic") == ""


def test_import_survives_a_jax_that_has_dropped_every_borrowed_name():
    output = _python(
        """
        import importlib.util, pathlib, sys
        root = pathlib.Path(importlib.util.find_spec("ecliptic").origin).parent
        spec = importlib.util.spec_from_file_location("ecliptic._jax", root / "_jax/__init__.py")
        room = sys.modules["ecliptic._jax"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(room)
        for name, row in room.BORROWED.items():
            room.BORROWED[name] = row._replace(module="jax.no_such_module")
        import ecliptic
        assert sys.modules["ecliptic._jax"] is room
        print(ecliptic.Module.__name__)
        """
    )
    assert output == "Module\n"
