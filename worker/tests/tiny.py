"""Tiny models of many architectures with random weights, and a service around them without a folder."""

from typing import Any

import mlx.core as mx
from mlx.utils import tree_flatten
from mlx_lm.utils import _get_classes

from bushel_worker.engine import MlxEngine
from bushel_worker.frames import Limits, Sampling
from bushel_worker.loading import _together, cache_costs
from bushel_worker.memory import MemoryPlan
from bushel_worker.rows import Row
from bushel_worker.selftest import prompts_agree, rows_agree
from bushel_worker.service import Service
from bushel_worker.stage import Stage
from bushel_worker.stage_rows import StageRows
from bushel_worker.text import TextPlan, Writer

LAYERS = 6
ON_CPU = mx.default_device() == mx.cpu
VOCABULARY = 128

BASE: dict[str, Any] = dict(
    hidden_size=32, num_hidden_layers=LAYERS, intermediate_size=64, num_attention_heads=4, num_key_value_heads=2,
    rms_norm_eps=1e-5, vocab_size=VOCABULARY, head_dim=8, rope_theta=1e4, tie_word_embeddings=False,
    max_position_embeddings=512,
)  # fmt: skip
_EXPERTS = dict(num_local_experts=4, num_experts_per_tok=2)
_DEEPSEEK = dict(
    moe_intermediate_size=16, n_shared_experts=1, n_routed_experts=4, routed_scaling_factor=1.0, kv_lora_rank=16,
    q_lora_rank=16, qk_rope_head_dim=8, v_head_dim=8, qk_nope_head_dim=8, topk_method="noaux_tc",
    scoring_func="sigmoid", norm_topk_prob=True, n_group=1, topk_group=1, num_experts_per_tok=2, moe_layer_freq=1,
    first_k_dense_replace=1, num_key_value_heads=4, attention_bias=False,
)  # fmt: skip
_MAMBA = dict(state_size=8, conv_kernel=4, use_bias=False, use_conv_bias=True, time_step_rank=4)

ARCHITECTURES: dict[str, dict[str, Any]] = {
    "llama": {},
    "qwen2": {},
    "qwen3": {},
    "olmo2": {},
    "phi3": dict(original_max_position_embeddings=512),
    "gemma3_text": dict(query_pre_attn_scalar=8, sliding_window=8, sliding_window_pattern=3),
    "gpt_oss": dict(
        **_EXPERTS, sliding_window=8, layer_types=["sliding_attention", "full_attention"] * 3,
        rope_scaling={
            "rope_type": "yarn", "factor": 4.0, "beta_fast": 32.0, "beta_slow": 1.0,
            "original_max_position_embeddings": 128,
        },
    ),
    "mixtral": _EXPERTS,
    "qwen3_moe": dict(
        num_experts=4, num_experts_per_tok=2, decoder_sparse_step=1, mlp_only_layers=[], moe_intermediate_size=32,
        norm_topk_prob=True,
    ),
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v32": dict(_DEEPSEEK, index_head_dim=16, index_n_heads=4, index_topk=8),
    "mamba": dict(_MAMBA),
    "mamba2": dict(
        _MAMBA, num_heads=8, n_groups=1, time_step_limit=[0.0, 100.0], layer_norm_epsilon=1e-5, chunk_size=8, expand=2,
    ),
    "qwen3_next": dict(
        linear_num_value_heads=4, linear_num_key_heads=2, linear_key_head_dim=8, linear_value_head_dim=8,
        linear_conv_kernel_dim=4, num_experts=4, num_experts_per_tok=2, decoder_sparse_step=1,
        shared_expert_intermediate_size=16, mlp_only_layers=[], moe_intermediate_size=16, norm_topk_prob=True,
        partial_rotary_factor=0.5, full_attention_interval=3,
    ),
    "cohere2": dict(sliding_window=8, sliding_window_pattern=3, layer_norm_eps=1e-5, logit_scale=1.0),
    "nemotron_h": dict(
        hybrid_override_pattern=list("M-M*-M"), mamba_num_heads=8, mamba_head_dim=8, ssm_state_size=8, conv_kernel=4,
        n_groups=2, time_step_limit=[0.0, 100.0], mlp_bias=False, use_bias=False, use_conv_bias=True,
        mamba_proj_bias=False, attention_bias=False, layer_norm_epsilon=1e-5,
    ),
    "lfm2": dict(
        block_dim=32, block_ff_dim=64, norm_eps=1e-5, conv_bias=False, conv_L_cache=3, block_multiple_of=8,
        block_ffn_dim_multiplier=1.0, block_auto_adjust_ff_dim=False, full_attn_idxs=[2, 5],
        layer_types=["conv", "conv", "full_attention"] * 2,
    ),
    "falcon_h1": dict(
        mamba_d_ssm=64, mamba_n_heads=8, mamba_d_head=8, mamba_n_groups=1, mamba_d_state=8, mamba_d_conv=4,
        mamba_expand=2, mamba_chunk_size=8, attention_bias=False, mlp_bias=False, projectors_bias=False,
        mamba_proj_bias=False, mamba_conv_bias=True, mamba_norm_before_gate=True, mamba_rms_norm=False,
        key_multiplier=1.0, lm_head_multiplier=1.0, embedding_multiplier=1.0, attention_in_multiplier=1.0,
        attention_out_multiplier=1.0, ssm_in_multiplier=1.0, ssm_out_multiplier=1.0, mlp_multipliers=[1.0, 1.0],
        ssm_multipliers=[1.0] * 5,
    ),
    "gpt2": dict(n_ctx=512, n_embd=32, n_head=4, n_layer=LAYERS, n_positions=512, layer_norm_epsilon=1e-5),
    # Known not to batch: gemma2's mask is wrong for several rows, llama4's caches cannot be merged.
    "gemma2": dict(attn_logit_softcapping=50.0, final_logit_softcapping=30.0, query_pre_attn_scalar=8.0),
}  # fmt: skip


SCALES = {"gpt2": 0.8}  # of the random weights; 0.3 for the others


def tiny_model(name: str = "llama", **changes: Any) -> Any:
    """Weights wide enough that greedy decoding does not fall into a cycle at once."""
    config = {**BASE, **ARCHITECTURES[name], **changes, "model_type": name}
    model_class, args_class = _get_classes(config)
    mx.random.seed(7)
    model = model_class(args_class.from_dict(config))
    scale = SCALES.get(name, 0.3)
    drawn = [
        (key, mx.random.normal(value.shape) * scale if value.dtype == mx.float32 and value.ndim > 1 else value)
        for key, value in tree_flatten(model.parameters())
    ]
    model.load_weights(drawn, strict=False)
    model.eval()
    mx.eval(model.parameters())
    return model


class NumberLanguage:
    """Every token is its number and a space."""

    vocabulary = VOCABULARY
    ends: frozenset[int] = frozenset()
    abilities = {"chat": False, "tools": False, "reasoning": False}

    def encode(self, prompt: dict[str, Any]) -> list[int]:
        return list(prompt["ids"])

    def text_plan(self, prompt: dict[str, Any], ids: list[int], stops: list[str]) -> TextPlan:
        return TextPlan(NumberDecoder(), stops)

    def label(self, token: int) -> tuple[str, list[int] | None]:
        return f"{token} ", None


class NumberDecoder:
    def push(self, token: int) -> str:
        return f"{token} "


def tiny_service(stage: Any, merging: bool | None = None, capacity_bytes: int = 1 << 40, rows_max: int = 64) -> Service:
    known = merging is not None
    merging = merging if known else rows_agree(stage, VOCABULARY, 2)
    caches = stage.new_caches()
    mx.eval(stage(mx.array([list(range(8))]), caches), [cache.state for cache in caches])
    return Service(
        engine=MlxEngine(StageRows(stage), ON_CPU),
        language=NumberLanguage(),
        memory=MemoryPlan(
            capacity_bytes=capacity_bytes,
            weights_bytes=1 << 30,
            working_bytes=1 << 20,
            costs=_together([cost for cache in caches for cost in cache_costs(cache)]),
        ),
        limits=Limits(512, rows_max, 64, 1 << 40, 1000),
        context_tokens=512,
        merging=bool(merging),
        reading_together=bool(merging) and (known or prompts_agree(stage, VOCABULARY)),
        tokens_per_second=1000,
        device="test",
        versions={},
        canary=[1, 2],
    )


class FixedPace:
    """Reads prompts in chunks of one size and never makes them wait."""

    tokens_per_second = 1000.0

    def __init__(self, chunk: int) -> None:
        self._chunk = chunk

    def chunk_tokens(self, left: int, decoding: bool) -> int:
        return self._chunk

    def read(self, tokens: int, seconds: float, decoding: bool) -> None:
        pass

    def wrote(self, seconds: float) -> None:
        pass


class Drive:
    """Runs a loop by hand, one round at a time, and keeps what it says."""

    def __init__(self, service: Service, chunk: int = 4096) -> None:
        self.frames: list[dict[str, Any]] = []
        self.service = service
        self.loop = service.loop(self.frames.append)
        self.loop._pace = FixedPace(chunk)
        self.rows: dict[str, Row] = {}

    def submit(
        self, attempt: str, prompt: list[int], tokens_max: int, sampling: Sampling | None = None, **named: Any
    ) -> Row:
        replay = named.pop("replay", [])
        writer = Writer(self.service.language.text_plan({"kind": "ids"}, prompt, named.pop("stop", [])))
        for token in replay:
            writer.push(token)
        row = Row(
            attempt, len(self.rows), prompt, list(replay), tokens_max, sampling or Sampling(), writer,
            logprobs=named.pop("logprobs", None), **named,
        )  # fmt: skip
        self.rows[attempt] = row
        self.loop.orders.put(("submit", row))
        return row

    def cancel(self, attempt: str) -> None:
        self.loop.orders.put(("cancel", attempt))

    def rounds(self, count: int = 1) -> None:
        for _ in range(count):
            self.loop._round()

    def run(self) -> "Drive":
        self.loop.work()
        return self

    def tokens(self, attempt: str) -> list[int]:
        return [row["token"] for row in self.shown(attempt)]

    def shown(self, attempt: str) -> list[dict[str, Any]]:
        steps = [frame for frame in self.frames if frame["kind"] == "step"]
        return [row for frame in steps for row in frame["rows"] if row["attempt"] == attempt]

    def end(self, attempt: str) -> dict[str, Any]:
        return next(f for f in self.frames if f["kind"] in ("finished", "failed") and f["attempt"] == attempt)


class TwoStages:
    """A model cut in two within one process, with bytes in between, as a pipeline would have it."""

    first = last = True

    def __init__(self, name: str, cut: int) -> None:
        self._front = Stage(tiny_model(name), (0, cut))
        self._back = Stage(tiny_model(name), (cut, LAYERS))
        self._own = len(self._front.new_caches())

    def new_caches(self) -> list[Any]:
        return self._front.new_caches() + self._back.new_caches()

    def __call__(self, entering: mx.array, caches: list[Any]) -> mx.array:
        hidden = self._front(entering, caches[: self._own])
        carried = mx.array(memoryview(hidden).tolist(), hidden.dtype)
        return self._back(carried, caches[self._own :])
