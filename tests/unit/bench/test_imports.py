"""The import benchmark looks at what was imported."""

import pytest

from bench import imports


def test_an_optional_package_is_refused_by_name():
    with pytest.raises(ImportError, match="loads optional packages: optax, tqdm"):
        imports.refuse_optional(["ecliptic.nn", "jaxtyping", "optax._src.base", "tqdm", "tqdm.std"])


def test_required_packages_are_accepted():
    imports.refuse_optional(["ecliptic", "jaxtyping", "numpy.random", "wadler_lindig"])


def test_a_package_without_module_cannot_pass_for_a_fast_one():
    with pytest.raises(ImportError, match=r"import json: AttributeError.*'Module'"):
        imports.imported("json")
