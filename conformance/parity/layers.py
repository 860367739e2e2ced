"""The layers: weights from the same key, values, gradients, errors."""

import jax
import jax.numpy as jnp
import numpy as np

from conformance.parity._table import Table

TABLE = Table("layers")


def _x(*shape):
    return jnp.asarray(np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape))


def _key(seed=0):
    return jax.random.PRNGKey(seed)


# A layer, and what it is called with.
LAYERS = {
    "linear": (lambda nn: nn.Linear(3, 2, key=_key()), _x(3)),
    "linear_without_bias": (lambda nn: nn.Linear(3, 2, use_bias=False, key=_key()), _x(3)),
    "linear_from_scalar": (lambda nn: nn.Linear("scalar", 2, key=_key()), _x()),
    "linear_to_scalar": (lambda nn: nn.Linear(3, "scalar", key=_key()), _x(3)),
    "linear_half": (lambda nn: nn.Linear(3, 2, dtype=jnp.float16, key=_key()), _x(3)),
    "linear_complex": (lambda nn: nn.Linear(3, 2, dtype=jnp.complex64, key=_key()), _x(3)),
    "linear_typed_key": (lambda nn: nn.Linear(3, 2, key=jax.random.key(0)), _x(3)),
    "mlp": (lambda nn: nn.MLP(2, 2, 3, 2, key=_key()), _x(2)),
    "mlp_depth_0": (lambda nn: nn.MLP(2, 2, 3, 0, key=_key()), _x(2)),
    "mlp_scalars": (lambda nn: nn.MLP("scalar", "scalar", 3, 1, key=_key()), _x()),
    "mlp_tanh": (
        lambda nn: nn.MLP(2, 2, 3, 1, jnp.tanh, jax.nn.sigmoid, key=_key()), _x(2)),
    "mlp_no_bias": (
        lambda nn: nn.MLP(2, 2, 3, 1, use_bias=False, use_final_bias=False, key=_key()), _x(2)),
    "mlp_prelu": (lambda nn: nn.MLP(2, 2, 3, 2, activation=nn.PReLU(), key=_key()), _x(2)),
    "mlp_scan": (lambda nn: nn.MLP(2, 2, 3, 3, scan=True, key=_key()), _x(2)),
    "identity": (lambda nn: nn.Identity(3, a="b"), _x(2)),
    "lambda": (lambda nn: nn.Lambda(jnp.sin), _x(2)),
    "prelu": (lambda nn: nn.PReLU(), _x(4)),
    "prelu_array": (lambda nn: nn.PReLU(jnp.array([0.1, 0.2])), _x(2)),
    "sequential": (
        lambda nn: nn.Sequential([nn.Linear(2, 3, key=_key()), nn.Lambda(jax.nn.relu)]), _x(2)),
    "sequential_empty": (lambda nn: nn.Sequential([]), _x(2)),
    "embedding": (lambda nn: nn.Embedding(3, 2, key=_key()), jnp.array(1)),
    "embedding_weight": (lambda nn: nn.Embedding(weight=_x(3, 2)), jnp.array(2)),
    "conv1d": (lambda nn: nn.Conv1d(2, 3, 2, key=_key()), _x(2, 5)),
    "conv2d": (lambda nn: nn.Conv2d(2, 4, 3, stride=2, padding=1, key=_key()), _x(2, 5, 5)),
    "conv3d": (lambda nn: nn.Conv3d(1, 1, 2, key=_key()), _x(1, 3, 3, 3)),
    "conv_groups": (lambda nn: nn.Conv2d(2, 4, 2, groups=2, key=_key()), _x(2, 3, 3)),
    "conv_dilation": (lambda nn: nn.Conv1d(1, 1, 2, dilation=2, key=_key()), _x(1, 6)),
    "conv_same": (lambda nn: nn.Conv1d(1, 1, 3, padding="SAME", key=_key()), _x(1, 5)),
    "conv_valid": (lambda nn: nn.Conv1d(1, 1, 3, padding="valid", key=_key()), _x(1, 5)),
    "conv_same_lower": (lambda nn: nn.Conv1d(1, 1, 2, padding="SAME_LOWER", key=_key()), _x(1, 5)),
    "conv_pairs": (lambda nn: nn.Conv1d(1, 1, 2, padding=((1, 2),), key=_key()), _x(1, 4)),
    "conv_reflect": (
        lambda nn: nn.Conv1d(1, 1, 3, padding=1, padding_mode="REFLECT", key=_key()), _x(1, 4)),
    "conv_replicate": (
        lambda nn: nn.Conv1d(1, 1, 3, padding=1, padding_mode="replicate", key=_key()), _x(1, 4)),
    "conv_circular": (
        lambda nn: nn.Conv1d(1, 1, 3, padding=1, padding_mode="CIRCULAR", key=_key()), _x(1, 4)),
    "conv_no_bias": (lambda nn: nn.Conv1d(1, 1, 2, use_bias=False, key=_key()), _x(1, 4)),
    "conv_transpose1d": (lambda nn: nn.ConvTranspose1d(2, 1, 3, stride=2, key=_key()), _x(2, 3)),
    "conv_transpose2d": (
        lambda nn: nn.ConvTranspose2d(1, 2, 2, stride=2, padding=1, output_padding=1, key=_key()),
        _x(1, 3, 3)),
    "conv_transpose_groups": (
        lambda nn: nn.ConvTranspose1d(2, 2, 2, groups=2, key=_key()), _x(2, 3)),
    "conv_transpose_same": (
        lambda nn: nn.ConvTranspose1d(1, 1, 3, stride=2, padding="SAME", key=_key()), _x(1, 3)),
    "conv_transpose_circular": (
        lambda nn: nn.ConvTranspose1d(1, 1, 3, padding_mode="CIRCULAR", padding="SAME",
                                      key=_key()), _x(1, 4)),
    "avg_pool1d": (lambda nn: nn.AvgPool1d(2), _x(1, 5)),
    "avg_pool2d": (lambda nn: nn.AvgPool2d((2, 1), stride=2, padding=1), _x(1, 4, 4)),
    "avg_pool3d": (lambda nn: nn.AvgPool3d(2), _x(1, 3, 3, 3)),
    "avg_pool_ceil": (lambda nn: nn.AvgPool1d(2, stride=2, use_ceil=True), _x(1, 5)),
    "max_pool1d": (lambda nn: nn.MaxPool1d(3, stride=2), _x(1, 7)),
    "max_pool2d": (lambda nn: nn.MaxPool2d(2, 2), _x(1, 4, 4)),
    "max_pool_ceil": (lambda nn: nn.MaxPool1d(2, 2, use_ceil=True), _x(1, 5)),
    "pool": (lambda nn: nn.Pool(0.0, jax.lax.add, 1, 2), _x(1, 4)),
    "adaptive_avg1d": (lambda nn: nn.AdaptiveAvgPool1d(3), _x(1, 7)),
    "adaptive_avg2d": (lambda nn: nn.AdaptiveAvgPool2d((2, 3)), _x(1, 5, 4)),
    "adaptive_max1d": (lambda nn: nn.AdaptiveMaxPool1d(2), _x(2, 5)),
    "adaptive_pool": (lambda nn: nn.AdaptivePool(2, 1, jnp.min), _x(1, 5)),
    "layer_norm": (lambda nn: nn.LayerNorm(4), _x(4)),
    "layer_norm_plain": (lambda nn: nn.LayerNorm((2, 2), use_weight=False, use_bias=False),
                         _x(2, 2)),
    "layer_norm_half": (lambda nn: nn.LayerNorm(4), _x(4).astype(jnp.float16)),
    "group_norm": (lambda nn: nn.GroupNorm(2, 4), _x(4, 3)),
    "group_norm_plain": (lambda nn: nn.GroupNorm(2, channelwise_affine=False), _x(4, 3)),
    "rms_norm": (lambda nn: nn.RMSNorm(4), _x(4)),
    "rms_norm_no_bias": (lambda nn: nn.RMSNorm(4, use_bias=False), _x(4)),
    "weight_norm": (lambda nn: nn.WeightNorm(nn.Linear(2, 3, key=_key())), _x(2)),
    "weight_norm_axis_none": (
        lambda nn: nn.WeightNorm(nn.Linear(2, 3, key=_key()), axis=None), _x(2)),
    "rotary": (lambda nn: nn.RotaryPositionalEmbedding(4), _x(3, 4)),
    "dropout_inference": (lambda nn: nn.Dropout(0.5, inference=True), _x(4)),
    "dropout_0": (lambda nn: nn.Dropout(0.0), _x(4)),
}  # fmt: skip


def _value(make, x):
    return lambda eqx: (lambda layer: (layer, layer(x)))(make(eqx.nn))


def _gradient(make, x):
    return lambda eqx: eqx.filter_grad(lambda m: jnp.sum(jnp.abs(m(x)) ** 2))(make(eqx.nn))


for _name, (_make, _input) in LAYERS.items():
    TABLE.add(_name, _value(_make, _input))

for _name in (
    "linear", "mlp", "mlp_prelu", "conv2d", "conv_transpose2d", "layer_norm", "group_norm",
    "rms_norm", "weight_norm", "embedding_weight", "prelu_array", "sequential",
):  # fmt: skip
    TABLE.add(f"gradient_of_{_name}", _gradient(*LAYERS[_name]))


def _attention(eqx, **options):
    return eqx.nn.MultiheadAttention(2, 4, key=_key(), **options)


Q = _x(3, 4)
TABLE.rows(
    dropout=lambda eqx: eqx.nn.Dropout(0.5)(jnp.ones(8), key=_key()),
    dropout_at_the_call=lambda eqx: eqx.nn.Dropout(0.5)(jnp.ones(4), inference=True),
    dropout_without_a_key=lambda eqx: eqx.nn.Dropout(0.5)(jnp.ones(4)),
    dropout_deterministic_warns=lambda eqx: eqx.nn.Dropout(0.5, deterministic=True),
    dropout_deterministic_at_the_call=lambda eqx: eqx.nn.Dropout(0.5)(
        jnp.ones(4), deterministic=True),
    gru=lambda eqx: eqx.nn.GRUCell(2, 3, key=_key())(_x(2), _x(3)),
    gru_no_bias=lambda eqx: eqx.nn.GRUCell(2, 3, use_bias=False, key=_key())(_x(2), _x(3)),
    lstm=lambda eqx: eqx.nn.LSTMCell(2, 3, key=_key())(_x(2), (_x(3), _x(3))),
    gru_weights=lambda eqx: eqx.nn.GRUCell(1, 2, key=_key()),
    lstm_weights=lambda eqx: eqx.nn.LSTMCell(1, 2, key=_key()),
    attention=lambda eqx: _attention(eqx)(Q, Q, Q),
    attention_weights=_attention,
    attention_mask=lambda eqx: _attention(eqx)(Q, Q, Q, mask=jnp.tril(jnp.ones((3, 3), bool))),
    attention_mask_by_head=lambda eqx: _attention(eqx)(Q, Q, Q, mask=jnp.ones((2, 3, 3), bool)),
    attention_bad_mask=lambda eqx: _attention(eqx)(Q, Q, Q, mask=jnp.ones((4, 3), bool)),
    attention_bias=lambda eqx: _attention(
        eqx, use_query_bias=True, use_key_bias=True, use_value_bias=True, use_output_bias=True
    )(Q, Q, Q),
    attention_sizes=lambda eqx: _attention(
        eqx, key_size=3, value_size=2, output_size=5, qk_size=2, vo_size=3
    )(Q, _x(2, 3), _x(2, 2)),
    attention_dropout=lambda eqx: _attention(eqx, dropout_p=0.5)(Q, Q, Q, key=_key(1)),
    attention_dropout_without_a_key=lambda eqx: _attention(eqx, dropout_p=0.5)(Q, Q, Q),
    attention_inference=lambda eqx: _attention(eqx, dropout_p=0.5, inference=True)(Q, Q, Q),
    attention_process_heads=lambda eqx: _attention(eqx)(
        Q, Q, Q, process_heads=lambda q, k, v: (2 * q, k, v)),
    attention_process_heads_bad=lambda eqx: _attention(eqx)(
        Q, Q, Q, process_heads=lambda q, k, v: (q[:1], k[:, :1], v)),
    attention_lengths=lambda eqx: _attention(eqx)(Q, Q[:2], Q),
    rotary_of_two_thetas=lambda eqx: [
        eqx.nn.RotaryPositionalEmbedding(6, theta=theta)(_x(3, 6)) for theta in (100.0, 10.0)],
    rotary_odd=lambda eqx: eqx.nn.RotaryPositionalEmbedding(3),
    rotary_negative=lambda eqx: eqx.nn.RotaryPositionalEmbedding(-2),
    rotary_wrong_size=lambda eqx: eqx.nn.RotaryPositionalEmbedding(4)(_x(3, 2)),
    rotate_half=lambda eqx: eqx.nn.RotaryPositionalEmbedding.rotate_half(_x(2, 4)),
    precompute=lambda eqx: eqx.nn.RotaryPositionalEmbedding.precompute_freqs_cis(
        4, 3, 10000.0, jnp.float32),
    linear_wrong_shape=lambda eqx: eqx.nn.Linear(3, 2, key=_key())(_x(2)),
    linear_scalar_wrong_shape=lambda eqx: eqx.nn.Linear("scalar", 2, key=_key())(_x(2)),
    linear_without_key=lambda eqx: eqx.nn.Linear(3, 2),
    layer_norm_wrong_shape=lambda eqx: eqx.nn.LayerNorm(3)(_x(4)),
    rms_norm_wrong_shape=lambda eqx: eqx.nn.RMSNorm(3)(_x(4)),
    layer_norm_old_name=lambda eqx: eqx.nn.LayerNorm(3, elementwise_affine=False),
    group_norm_bad_groups=lambda eqx: eqx.nn.GroupNorm(3, 4),
    group_norm_no_channels=lambda eqx: eqx.nn.GroupNorm(2),
    conv_wrong_rank=lambda eqx: eqx.nn.Conv2d(1, 1, 2, key=_key())(_x(1, 4)),
    conv_bad_groups=lambda eqx: eqx.nn.Conv1d(3, 4, 2, groups=2, key=_key()),
    conv_bad_padding=lambda eqx: eqx.nn.Conv1d(1, 1, 2, padding="nothing", key=_key()),
    conv_bad_padding_mode=lambda eqx: eqx.nn.Conv1d(1, 1, 2, padding_mode="x", key=_key()),
    conv_bad_kernel=lambda eqx: eqx.nn.Conv2d(1, 1, (2, 2, 2), key=_key()),
    conv_transpose_reflect=lambda eqx: eqx.nn.ConvTranspose1d(
        1, 1, 2, padding_mode="REFLECT", key=_key()),
    conv_transpose_output_padding=lambda eqx: eqx.nn.ConvTranspose1d(
        1, 1, 2, stride=1, output_padding=2, key=_key()),
    max_pool_wrong_rank=lambda eqx: eqx.nn.MaxPool2d(2)(_x(3, 3)),
    pool_padding_too_large=lambda eqx: eqx.nn.MaxPool1d(2, padding=3),
    pool_integers=lambda eqx: eqx.nn.MaxPool1d(2)(jnp.arange(4)[None]),
    embedding_floats=lambda eqx: eqx.nn.Embedding(weight=_x(3, 2))(jnp.array(1.0)),
    embedding_vector=lambda eqx: eqx.nn.Embedding(weight=_x(3, 2))(jnp.array([1, 2])),
    embedding_nothing=lambda eqx: eqx.nn.Embedding(key=_key()),
    embedding_weight_of_a_wrong_shape=lambda eqx: eqx.nn.Embedding(2, 2, weight=_x(3, 2)),
    embedding_beyond=lambda eqx: eqx.nn.Embedding(weight=_x(3, 2))(jnp.array(7)),
    sequential_index=lambda eqx: eqx.nn.Sequential(
        [eqx.nn.Identity(), eqx.nn.Lambda(jnp.sin)])[1],
    sequential_slice=lambda eqx: eqx.nn.Sequential(
        [eqx.nn.Identity(), eqx.nn.Lambda(jnp.sin)])[:1],
    sequential_bad_index=lambda eqx: eqx.nn.Sequential([eqx.nn.Identity()])["a"],
    sequential_beyond=lambda eqx: eqx.nn.Sequential([eqx.nn.Identity()])[3],
    sequential_length=lambda eqx: len(eqx.nn.Sequential([eqx.nn.Identity()])),
    sequential_iterates=lambda eqx: list(eqx.nn.Sequential([eqx.nn.Identity()])),
    sequential_is_stateful=lambda eqx: eqx.nn.Sequential([eqx.nn.Identity()]).is_stateful(),
    sequential_nested=lambda eqx: eqx.nn.Sequential(
        [eqx.nn.Sequential([eqx.nn.Lambda(jnp.sin)])])(_x(2)),
    sequential_splits_its_key=lambda eqx: eqx.nn.Sequential(
        [eqx.nn.Dropout(0.5), eqx.nn.Dropout(0.5)])(jnp.ones(8), key=_key()),
    sequential_of_functions=lambda eqx: eqx.nn.Sequential([jnp.sin])(_x(2)),
    shared=lambda eqx: eqx.nn.Shared(
        [eqx.nn.Linear(2, 2, key=_key()), eqx.nn.Linear(2, 2, key=_key(1))],
        where=lambda t: t[1].weight, get=lambda t: t[0].weight)()[1].weight,
    shared_leaves=lambda eqx: len(jax.tree.leaves(eqx.filter(eqx.nn.Shared(
        [eqx.nn.Linear(2, 2, key=_key()), eqx.nn.Linear(2, 2, key=_key(1))],
        where=lambda t: t[1].weight, get=lambda t: t[0].weight), eqx.is_array))),
    prelu_none=lambda eqx: eqx.nn.PReLU(None),
    weight_norm_of_what_is_not_there=lambda eqx: eqx.nn.WeightNorm(eqx.nn.Identity()),
    mlp_bad_depth=lambda eqx: eqx.nn.MLP(1, 1, 1, -1, key=_key()),
    linear_negative=lambda eqx: eqx.nn.Linear(-1, 1, key=_key()),
    dropout_bad_p=lambda eqx: eqx.nn.Dropout(1.5)(jnp.ones(2), key=_key()),
)  # fmt: skip
