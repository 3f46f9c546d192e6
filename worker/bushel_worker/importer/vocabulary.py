"""Builds the tokenizer files of the folder from a GGUF's vocabulary: byte-level BPE with merges, or
SentencePiece scores from which merges are derived."""

import json
from pathlib import Path
from typing import Any

from .gguf_file import GgufFile, ImportRefused

_NORMAL, _UNKNOWN, _CONTROL, _USER, _BYTE = 1, 2, 3, 4, 6

_WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_LLAMA3 = _WORDS + r"\p{N}{1,3}" + _REST
_QWEN2 = _WORDS + r"\p{N}" + _REST

_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}


def _split(pattern: str) -> dict[str, Any]:
    cut = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return {"type": "Sequence", "pretokenizers": [cut, {**_BYTE_LEVEL, "use_regex": False}]}


_DIGITS = {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, _BYTE_LEVEL]}

# How text is cut before merging, by the name that GGUF gives it.
PRE_TOKENIZERS: dict[str, dict[str, Any]] = {
    "default": _BYTE_LEVEL,
    "gpt-2": _BYTE_LEVEL,
    "smollm": _DIGITS,
    "starcoder": _DIGITS,
    "llama-bpe": _split(_LLAMA3),
    "llama3": _split(_LLAMA3),
    "smaug-bpe": _split(_LLAMA3),
    "qwen2": _split(_QWEN2),
    "deepseek-r1-qwen": _split(_QWEN2),
}
_COMPOSED = {"qwen2", "deepseek-r1-qwen"}  # normalised to NFC first
_WHOLE_WORDS = {"llama-bpe", "llama3"}  # a word that is in the vocabulary is never merged


def write_tokenizer(gguf: GgufFile, folder: Path) -> dict[str, Any]:
    """Writes tokenizer.json and tokenizer_config.json; returns what config.json should say of it."""
    tokens = gguf.metadata.get("tokenizer.ggml.tokens")
    if not isinstance(tokens, list) or not tokens or not all(isinstance(token, str) for token in tokens):
        raise ImportRefused("it holds no vocabulary (tokenizer.ggml.tokens)")
    kinds = [int(kind) for kind in gguf.metadata.get("tokenizer.ggml.token_type", [])] or [_NORMAL] * len(tokens)
    if len(kinds) != len(tokens):
        raise ImportRefused(f"it has {len(tokens)} tokens but {len(kinds)} token types")
    vocabulary: dict[str, int] = {}
    for number, token in enumerate(tokens):
        vocabulary.setdefault(token, number)

    model = gguf.metadata.get("tokenizer.ggml.model")
    if model == "gpt2":
        document = _byte_level(gguf, vocabulary)
    elif model == "llama":
        document = _sentence_piece(gguf, tokens, kinds, vocabulary)
    else:
        raise ImportRefused(f'tokenizer "{model}" is not supported; gpt2 and llama are')

    def special(key: str) -> int | None:
        number = gguf.metadata.get(f"tokenizer.ggml.{key}")
        return number if isinstance(number, int) and 0 <= number < len(tokens) else None

    bos, eos = special("bos_token_id"), special("eos_token_id")
    pad, unknown = special("padding_token_id"), special("unknown_token_id")
    add_bos = bool(gguf.metadata.get("tokenizer.ggml.add_bos_token", model == "llama")) and bos is not None
    document["added_tokens"] = [
        {
            "id": number,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kinds[number] != _USER,
        }
        for number, token in enumerate(tokens)
        if kinds[number] in (_CONTROL, _USER, _UNKNOWN) and vocabulary[token] == number
    ]
    if add_bos and bos is not None:
        document["post_processor"] = _begin_with(tokens[bos], bos)
    _write(folder / "tokenizer.json", document)

    settings: dict[str, Any] = {
        "add_bos_token": add_bos,
        "clean_up_tokenization_spaces": False,
        "model_max_length": gguf.metadata.get(f"{gguf.metadata['general.architecture']}.context_length"),
        "tokenizer_class": "PreTrainedTokenizerFast",
    }
    for name, place in (("bos_token", bos), ("eos_token", eos), ("pad_token", pad), ("unk_token", unknown)):
        if place is not None:
            settings[name] = tokens[place]
    template = gguf.metadata.get("tokenizer.chat_template")
    if isinstance(template, str) and template.strip():
        settings["chat_template"] = template
    _write(folder / "tokenizer_config.json", settings)

    ends = [number for number in (eos, special("eot_token_id"), special("eom_token_id")) if number is not None]
    about: dict[str, Any] = {}
    if ends:
        about["eos_token_id"] = ends[0] if len(set(ends)) == 1 else sorted(set(ends))
    if bos is not None:
        about["bos_token_id"] = bos
    return about


def _byte_level(gguf: GgufFile, vocabulary: dict[str, int]) -> dict[str, Any]:
    name = gguf.metadata.get("tokenizer.ggml.pre", "default")
    if name not in PRE_TOKENIZERS:
        known = ", ".join(sorted(PRE_TOKENIZERS))
        raise ImportRefused(f'the way "{name}" cuts text into words is not known here; known are {known}')
    merges = gguf.metadata.get("tokenizer.ggml.merges")
    if not isinstance(merges, list):
        raise ImportRefused("its vocabulary has no merges (tokenizer.ggml.merges)")
    pairs = []
    for merge in merges:
        left, _, right = merge.partition(" ")
        if left not in vocabulary or right not in vocabulary or left + right not in vocabulary:
            raise ImportRefused("a merge in tokenizer.ggml.merges names a token that is not in the vocabulary")
        pairs.append([left, right])
    return {
        "version": "1.0",
        "normalizer": {"type": "NFC"} if name in _COMPOSED else None,
        "pre_tokenizer": PRE_TOKENIZERS[name],
        "post_processor": None,
        "decoder": _BYTE_LEVEL,
        "model": _bpe(vocabulary, pairs, ignore_merges=name in _WHOLE_WORDS),
    }


def _sentence_piece(gguf: GgufFile, tokens: list[str], kinds: list[int], vocabulary: dict[str, int]) -> dict[str, Any]:
    scores = gguf.metadata.get("tokenizer.ggml.scores")
    if scores is None or len(scores) != len(tokens):
        raise ImportRefused("its vocabulary has no scores (tokenizer.ggml.scores)")
    ranked = []
    for token, number in vocabulary.items():
        if kinds[number] != _NORMAL:
            continue
        halves = [(token[:cut], token[cut:]) for cut in range(1, len(token))]
        known = [pair for pair in halves if pair[0] in vocabulary and pair[1] in vocabulary]
        known.sort(key=lambda pair: (vocabulary[pair[0]], vocabulary[pair[1]]))
        ranked += [(-float(scores[number]), number, order, pair) for order, pair in enumerate(known)]
    ranked.sort(key=lambda entry: entry[:3])
    unknown = next((token for token, number in vocabulary.items() if kinds[number] == _UNKNOWN), None)
    prefix = bool(gguf.metadata.get("tokenizer.ggml.add_space_prefix", True))
    space = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    begin = [{"type": "Prepend", "prepend": "▁"}] if prefix else []
    decoders: list[dict[str, Any]] = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    if prefix:
        decoders.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return {
        "version": "1.0",
        "normalizer": {"type": "Sequence", "normalizers": [*begin, space]},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": decoders},
        "model": _bpe(vocabulary, [list(pair) for *_, pair in ranked], unknown=unknown, byte_fallback=True),
    }


def _bpe(
    vocabulary: dict[str, int],
    merges: list[list[str]],
    *,
    unknown: str | None = None,
    byte_fallback: bool = False,
    ignore_merges: bool = False,
) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": byte_fallback,
        "byte_fallback": byte_fallback,
        "ignore_merges": ignore_merges,
        "vocab": vocabulary,
        "merges": merges,
    }


def _begin_with(token: str, number: int) -> dict[str, Any]:
    begin = {"SpecialToken": {"id": token, "type_id": 0}}
    first, second = {"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}
    return {
        "type": "TemplateProcessing",
        "single": [begin, first],
        "pair": [begin, first, {"SpecialToken": {"id": token, "type_id": 1}}, second],
        "special_tokens": {token: {"id": token, "ids": [number], "tokens": [token]}},
    }


def _write(path: Path, document: dict[str, Any]) -> None:
    path.write_text(json.dumps(document, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
