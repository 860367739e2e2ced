"""The table of borrowed names: each row resolves, is used, and fails with advice."""

import ast
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

from ecliptic import _jax
from tests.support.project import SRC, parse

ROWS = sorted(_jax.BORROWED)


def _used() -> set[str]:
    names: set[str] = set()
    for path in SRC.rglob("*.py"):
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").endswith("_jax"):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Attribute) and ast.unparse(node.value) == "_jax":
                names.add(node.attr)
    return names


@pytest.mark.parametrize("name", ROWS)
def test_a_row_resolves(name):
    assert getattr(_jax, name) is not None


@pytest.mark.parametrize("name", ROWS)
def test_a_row_says_why_and_since_when(name):
    row = _jax.BORROWED[name]
    assert row.why
    assert row.since[0].isdigit()


@pytest.mark.parametrize("name", ROWS)
def test_a_row_is_used(name):
    assert name in _used()


@pytest.mark.parametrize("name", ROWS)
def test_the_meaning_of_a_row_is_tested(name):
    texts = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.py")]
    assert any(f"_jax.{name}" in text for text in texts)


def test_a_name_is_looked_up_once(monkeypatch):
    row = _jax.Borrowed("math", "tau", "0.4", "count the look-ups")
    monkeypatch.setitem(_jax.BORROWED, "tau", row)
    first = _jax.tau
    monkeypatch.delitem(_jax.BORROWED, "tau")
    try:
        assert _jax.tau is first
    finally:
        del _jax.tau


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'ecliptic\._jax' has no attribute 'nothing'"):
        _jax.nothing


@pytest.mark.parametrize("module", ["jax.numpy", "jax.no_such_module"])
def test_a_name_that_jax_has_dropped_says_what_it_was_for(monkeypatch, module):
    row = _jax.Borrowed(module, "no_such_name", "0.4", "show the message")
    monkeypatch.setitem(_jax.BORROWED, "gone", row)
    with pytest.raises(ImportError, match=rf"JAX has no {module}\.no_such_name any more.*show the"):
        _jax.gone


class TestMeaning:
    """What each borrowed name means; a JAX that changes it fails here first."""

    def test_tracer_is_the_type_of_traced_values(self):
        kinds = []
        jax.jit(lambda x: kinds.append(isinstance(x, _jax.Tracer)))(jnp.ones(2))
        assert kinds == [True]
        assert not isinstance(jnp.ones(2), _jax.Tracer)

    def test_is_vmappable_knows_values_of_registered_types_alone(self):
        assert _jax.is_vmappable(sparse.BCOO.fromdense(jnp.eye(2)))
        assert not _jax.is_vmappable({})

    def test_typed_nd_array_is_what_a_constant_of_a_trace_becomes(self):
        constant = np.ones(2, np.float32)
        (found,) = jax.make_jaxpr(lambda x: x + jnp.asarray(constant))(constant).consts
        assert isinstance(found, _jax.TypedNdArray)
        assert np.array_equal(np.asarray(found), constant)

    def test_spec_types_holds_the_types_that_say_how_a_type_is_mapped(self):
        assert int in _jax.spec_types

    def test_vmappables_maps_a_type_to_the_kind_of_its_axes(self):
        assert _jax.vmappables[sparse.BCOO] == (int, int)

    def test_to_elt_handlers_take_one_element_of_a_whole(self):
        whole = sparse.BCOO.fromdense(jnp.stack([jnp.eye(3), 2 * jnp.eye(3)]), n_batch=1)
        take = _jax.to_elt_handlers[sparse.BCOO]
        element = take(lambda part, axis: jnp.take(part, 1, axis), None, whole, 0)
        assert np.array_equal(element.todense(), 2 * np.eye(3))

    def test_from_elt_handlers_make_a_whole_of_an_element(self):
        element = sparse.BCOO.fromdense(jnp.eye(3))
        put = _jax.from_elt_handlers[sparse.BCOO]
        whole = put(lambda size, part, axis: jnp.stack([part] * size, axis), 2, element, 0)
        assert np.array_equal(whole.todense(), np.stack([np.eye(3)] * 2))

    def test_trace_state_clean_is_false_inside_a_trace(self):
        inside = []
        jax.jit(lambda x: inside.append(_jax.trace_state_clean()))(1)
        assert inside == [False]
        assert _jax.trace_state_clean()

    def test_eval_jaxpr_runs_a_program_with_other_constants(self):
        constant = jnp.ones(2)
        program = jax.make_jaxpr(lambda x: x + constant)(constant)
        (out,) = _jax.eval_jaxpr(program.jaxpr, [3 * constant], constant)
        assert np.array_equal(out, [4, 4])

    def test_a_literal_has_its_value(self):
        (eqn,) = jax.make_jaxpr(lambda x: x + 2.0)(1.0).eqns
        assert [atom.val for atom in eqn.invars if isinstance(atom, _jax.Literal)] == [2.0]

    def test_names_and_places_of_operations_are_those_of_the_context(self):
        with jax.named_scope("outer"):
            stack = _jax.current_name_stack()
        (eqn,) = jax.make_jaxpr(jnp.sin)(1.0).eqns

        def again(x):
            with _jax.user_context(eqn.source_info.traceback, name_stack=stack):
                return jnp.cos(x)

        (made,) = jax.make_jaxpr(again)(1.0).eqns
        assert "outer" in str(made.source_info.name_stack)
        assert made.source_info.traceback is eqn.source_info.traceback

    def test_shaped_array_is_the_type_of_an_array(self):
        assert type(jax.typeof(jnp.ones(2))) is _jax.ShapedArray
        assert _jax.ShapedArray((2,), np.dtype(np.float32)) == jax.typeof(np.ones(2, np.float32))

    def test_undefined_primal_is_what_an_operation_is_transposed_by(self):
        undefined = _jax.UndefinedPrimal(jax.typeof(jnp.ones(2)))
        assert _jax.is_undefined_primal(undefined)
        assert undefined.aval.shape == (2,)
