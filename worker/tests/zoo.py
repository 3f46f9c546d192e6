"""Tiny configurations for as many of mlx-lm's architectures as one set of values can serve: names mean the same in
most of them. What an architecture wants otherwise is in `OTHERWISE`."""

import importlib
import inspect
import pkgutil
from typing import Any

import mlx.core as mx
import mlx_lm.models
from mlx.utils import tree_flatten

from .tiny import ARCHITECTURES, BASE, LAYERS, SCALES, VOCABULARY

COMMON: dict[str, Any] = dict(
    BASE, attention_bias=False, mlp_bias=False, use_bias=False, qkv_bias=False, bias=False, hidden_act="silu",
    norm_eps=1e-5, layer_norm_eps=1e-5, layer_norm_epsilon=1e-5, layernorm_epsilon=1e-5, rms_norm_epsilon=1e-5,
    # mixtures of experts
    num_experts=4, num_local_experts=4, n_routed_experts=4, moe_num_experts=4, num_experts_per_tok=2, moe_topk=2,
    moe_k=2, top_k=2, num_shared_experts=1, n_shared_experts=1, num_shared_expert=1, moe_intermediate_size=32,
    shared_expert_intermediate_size=32, shared_intermediate_size=32, expert_ffn_hidden_size=32, ffn_hidden_size=64,
    intermediate_size_mlp=64, decoder_sparse_step=1, mlp_only_layers=[], norm_topk_prob=True, moe_layer_freq=1,
    first_k_dense_replace=1, n_group=1, topk_group=1, routed_scaling_factor=1.0, topk_method="noaux_tc",
    scoring_func="sigmoid", use_expert_bias=False, num_dense_layers=1, use_mixed_mlp_moe=True, use_cla=False,
    cla_share_factor=1, expert_layer_offset=1, expert_layer_period=2, zero_expert_num=1, zero_expert_type="identity",
    # attention
    kv_lora_rank=16, q_lora_rank=16, qk_rope_head_dim=8, v_head_dim=8, qk_nope_head_dim=8, sliding_window=8,
    sliding_window_size=8, sliding_window_pattern=3, layer_types=["sliding_attention", "full_attention"] * 3,
    use_qk_norm=True, qk_norm=True, post_norm=False, partial_rotary_factor=0.5, rotary_pct=0.5, rotary_emb_base=10000,
    rotary_dim=4, query_pre_attn_scalar=8, index_head_dim=16, index_n_heads=4, index_topk=8,
    original_max_position_embeddings=512, no_rope_layers=[1, 1, 1, 0, 1, 1], use_sliding_window=False,
    # scales
    logits_scaling=1.0, logit_scale=1.0, attention_multiplier=0.35, embedding_multiplier=1.0, residual_multiplier=1.0,
    dim_model_base=32, scale_depth=1.4, scale_emb=1.0, mla_scale_q_lora=True, mla_scale_kv_lora=True,
    # recurrent layers
    state_size=8, conv_kernel=4, use_conv_bias=True, time_step_rank=4, n_groups=1, time_step_limit=[0.0, 100.0],
    chunk_size=8, expand=2, mamba_d_conv=4, mamba_d_state=8, mamba_expand=2, mamba_n_heads=8, mamba_d_head=8,
    mamba_n_groups=1, mamba_conv_bias=True, mamba_proj_bias=False, attn_layer_offset=1, attn_layer_period=3,
    conv_window=2, conv_bias=False, conv_L_cache=3, sliding_window_layers=[1, 4], layer_group_size=3, group_norm_size=1,
    linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=8, linear_value_head_dim=8,
    linear_conv_kernel_dim=4, full_attention_interval=3, lru_width=32, attention_window_size=8,
    # sizes under other names
    hidden_dim=32, num_layers=LAYERS, n_layers=LAYERS, n_layer=LAYERS, num_heads=4, n_heads=4, n_head=4, num_kv_heads=2,
    n_kv_heads=2, n_embd=32, d_model=32, n_inner=64, n_positions=512, n_ctx=512, block_size=512, n_vocab=VOCABULARY,
    padded_vocab_size=VOCABULARY, model_max_length=512, ffn_dim=64, max_seq_len=512, num_kv_reuse_layers=2,
    multi_query_attention=True, kv_channels=8, ffn_config={"ffn_hidden_size": 32, "moe_num_experts": 4, "moe_top_k": 2},
    attn_config={"kv_n_heads": 2, "clip_qkv": 8.0, "rope_theta": 1e4}, intermediate_dim=64, d_ff=64,
)  # fmt: skip

_ROPE = {
    "rope_type": "default", "rope_theta": 1e4, "llama_4_scaling_beta": 0.1, "original_max_position_embeddings": 512,
}  # fmt: skip
_YARN = {"rope_scaling": {
    "type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 128,
    "beta_fast": 32.0, "beta_slow": 1.0,
}}  # fmt: skip

OTHERWISE: dict[str, dict[str, Any]] = {
    "phixtral": dict(
        num_vocab=VOCABULARY, model_dim=32, num_heads=4, num_layers=LAYERS, rotary_dim=4, num_experts_per_tok=2,
        num_local_experts=4, ffn_dim=64,
    ),
    "granitemoehybrid": dict(layer_types=["mamba", "attention"] * 3),
    "lfm2_moe": dict(layer_types=["conv", "full_attention"] * 3, full_attn_idxs=[1, 3, 5]),
    "exaone_moe": dict(is_moe_layer=[False, True, True, True, True, True]),
    "exaone4": dict(rope_scaling=None, sliding_window_pattern="LLG"),
    "glm4_moe": dict(rope_scaling=None),
    "glm_moe_dsa": dict(rope_parameters={"rope_theta": 1e4}, num_key_value_heads=4),
    "mimo_v2_flash": dict(
        hybrid_layer_pattern=[0, 1, 1, 0, 1, 1], moe_layer_freq=[0, 1, 1, 1, 1, 1], add_swa_attention_sink_bias=True,
        add_full_attention_sink_bias=False, swa_rope_theta=1e4, swa_num_attention_heads=4, swa_num_key_value_heads=2,
        swa_head_dim=8, swa_v_head_dim=8, attention_value_scale=1.0,
    ),
    "kimi_linear": dict(
        linear_attn_config={
            "kda_layers": [1, 2, 4, 5], "full_attn_layers": [3, 6], "num_heads": 4, "head_dim": 8, "short_conv_kernel_size": 4,
        },
        num_key_value_heads=4,
    ),
    "longcat_flash": dict(attention_method="MLA"),
    "phimoe": dict(rope_scaling={
        "type": "longrope", "short_factor": [1.0] * 4, "long_factor": [1.0] * 4, "short_mscale": 1.0, "long_mscale": 1.0,
        "original_max_position_embeddings": 512,
    }),
    "phi3": dict(rope_scaling=None),
    "deepseek_v2": dict(_YARN),
    "minicpm3": dict(rope_scaling={
        "type": "longrope", "short_factor": [1.0] * 4, "long_factor": [1.0] * 4, "original_max_position_embeddings": 512,
    }),
    "hunyuan": dict(rope_scaling={"type": "dynamic", "alpha": 1.0, "factor": 1.0}),
    "ministral3": dict(rope_parameters=_ROPE),
    "mistral4": dict(rope_parameters=_ROPE, num_key_value_heads=4),
    "mellum": dict(rope_parameters={"sliding_attention": _ROPE, "full_attention": _ROPE}),
    "lfm2-vl": dict(
        block_dim=32, block_ff_dim=64, block_multiple_of=8, block_ffn_dim_multiplier=1.0, model_type="lfm2",
        block_auto_adjust_ff_dim=False, full_attn_idxs=[2, 5], layer_types=["conv", "conv", "full_attention"] * 2,
    ),
    "llama4": dict(attention_chunk_size=8, interleave_moe_layer_step=1, rope_scaling=None, num_experts_per_tok=1),
    "olmo_hybrid": dict(
        linear_allow_neg_eigval=True, layer_types=["linear_attention", "linear_attention", "full_attention"] * 2,
    ),
    "openelm": dict(
        num_transformer_layers=LAYERS, model_dim=32, ffn_dim_divisor=8, num_query_heads=[4] * LAYERS,
        num_kv_heads=[2] * LAYERS, ffn_multipliers=[2.0] * LAYERS, ffn_with_glu=True, normalize_qk_projections=True,
        share_input_output_layers=True, rms_norm_eps=1e-5, rope_freq_constant=1e4,
    ),
    "step3p5": dict(layer_types=["full_attention", "sliding_attention"] * 3),
    "qwen": dict(intermediate_size=128, seq_length=512),
    "qwen3_5": dict(layer_types=["linear_attention", "linear_attention", "full_attention"] * 2),
    "recurrent_gemma": dict(block_types=["recurrent", "recurrent", "attention"], logits_soft_cap=30.0),
}  # fmt: skip

PARAMETERS_MAX = 5_000_000

INNER = ("text_config", "llm_config", "language_config")  # of models that also see


def architectures() -> list[str]:
    """Every architecture that mlx-lm has, by the name of its module."""
    names = []
    for found in pkgutil.iter_modules(mlx_lm.models.__path__):
        try:
            module = importlib.import_module(f"mlx_lm.models.{found.name}")
        except BaseException:  # one wants a package that nobody has, and exits
            names.append(found.name)
            continue
        if hasattr(module, "Model") and hasattr(module, "ModelArgs"):
            names.append(found.name)
    return names


def zoo_model(name: str) -> Any:
    """A tiny model with random weights, the same at every call. Raises whatever mlx-lm raises."""
    module = importlib.import_module(f"mlx_lm.models.{name}")
    config = {**COMMON, "model_type": name, **ARCHITECTURES.get(name, {}), **OTHERWISE.get(name, {})}
    fields = inspect.signature(module.ModelArgs).parameters
    if name in ARCHITECTURES:
        config = {**BASE, "model_type": name, **ARCHITECTURES[name]}
    for inner in INNER:
        if inner in fields:
            config[inner] = dict(config)
    mx.random.seed(7)
    model = module.Model(module.ModelArgs.from_dict(config))
    size = sum(value.size for _, value in tree_flatten(model.parameters()))
    if size > PARAMETERS_MAX:
        raise ValueError(f"it has {size // 1_000_000} million parameters: its sizes have names of their own")
    scale = SCALES.get(name, 0.3)
    drawn = [
        (key, mx.random.normal(value.shape) * scale if value.dtype == mx.float32 and value.ndim > 1 else value)
        for key, value in tree_flatten(model.parameters())
    ]
    model.load_weights(drawn, strict=False)
    model.eval()
    mx.eval(model.parameters())
    return model
