"""Names of Equinox that do something else than those of Ecliptic."""

import inspect
import io

import jax
import jax.numpy as jnp
import pytest

import ecliptic as ec
import ecliptic.compat.equinox as eqx

X = jnp.arange(4.0)


class TestOldNames:
    def test_static_field_warns_and_makes_a_static_field(self):
        with pytest.warns(DeprecationWarning, match="in favour of `field"):

            class Named(eqx.Module):
                name: str = eqx.static_field(default="n")

        assert jax.tree.leaves(Named()) == []

    def test_tree_inference_sets_the_flags(self):
        assert eqx.tree_inference(eqx.nn.Dropout(0.5), True).inference

    def test_strict_config_makes_a_class_abstract_if_told_to(self):
        class Forced(eqx.Module, strict=eqx.StrictConfig(force_abstact=True)):
            pass

        class Plain(eqx.Module, strict=eqx.StrictConfig(allow_method_override=True)):
            pass

        Plain()
        with pytest.raises(TypeError, match="abstract"):
            Forced()


class TestPmap:
    def test_a_function_runs_twice_for_each_program(self):
        traces = []

        @eqx.filter_pmap
        def f(x):
            "Doubles."
            traces.append(1)
            return 2 * x

        assert f(X).tolist() == f(X).tolist() == (2 * X).tolist()
        assert len(traces) == 2
        assert (f.__name__, f.__doc__, str(inspect.signature(f))) == ("f", "Doubles.", "(x)")

    def test_it_is_a_method_in_any_form(self):
        class M(eqx.Module):
            by: int

            @eqx.filter_pmap
            def scale(self, x):
                return self.by * x

            @eqx.filter_pmap(out_axes=None, in_axes=None, axis_size=1)
            @staticmethod
            def same(x):
                return x

        assert M(3).scale(X).tolist() == (3 * X).tolist()
        assert M(3).same(X).tolist() == M.same(X).tolist() == X.tolist()

    def test_what_cannot_be_called_is_refused(self):
        with pytest.raises(TypeError, match="`filter_pmap` needs a callable"):
            eqx.filter_pmap(1)


class TestChecks:
    @pytest.mark.parametrize(
        "check",
        [
            lambda x: eqx.error_if(x, x > 0, "egads"),
            lambda x: eqx.branched_error_if(x, x > 0, 1, ["not this", "egads"]),
        ],
    )
    def test_an_error_in_a_program_is_framed(self, check):
        with pytest.raises(eqx.EquinoxRuntimeError, match="egads") as caught:
            eqx.filter_jit(check)(jnp.array(1.0))
        assert type(caught.value) is ec.errors.RuntimeCheckError
        first, second, third, *_ = str(caught.value).splitlines()
        assert first.startswith("Above is the stack outside of JIT")
        assert second == "egads"
        assert "EQX_ON_ERROR" in third

    def test_an_error_outside_of_a_program_is_not(self):
        with pytest.raises(eqx.EquinoxRuntimeError, match="^egads"):
            eqx.error_if(X, X > 0, "egads")

    def test_a_message_that_is_none_is_refused_as_ever(self):
        with pytest.raises(TypeError, match="is a string; got 3"):
            eqx.filter_jit(lambda x: eqx.error_if(x, x > 0, 3))(1.0)


@pytest.mark.parametrize(
    ("like", "message"),
    [
        (({}, X, [2.0]), r"^Error at leaf with path \(SequenceKey\(idx=2\), Seq.*\):\nCannot re"),
        (
            ({}, X.astype(int)),
            r"^Deserialised leaf at path \(SequenceKey\(idx=1\),\):\nDeserialised leaf",
        ),
    ],
)
def test_an_error_of_reading_names_the_leaf_by_keys(like, message):
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, ({}, X))
    file.seek(0)
    with pytest.raises(RuntimeError, match=message) as caught:
        eqx.tree_deserialise_leaves(file, like)
    assert type(caught.value) is ec.errors.SerialisationError


def test_errors_that_are_about_no_leaf_are_those_of_ecliptic():
    with pytest.raises(ec.errors.StructureError):
        eqx.tree_deserialise_leaves(io.BytesIO(), [1.0], filter_spec=[1, 2])
