"""A real model of a few kilobytes, written on the spot: it loads in milliseconds and says letters that mean nothing.

It has all that a large one has: a vocabulary with texts that steer it, a chat template, weights. So the server that asks
it is the real one, and only the model is a double.
"""

import random
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

WINDOW = 512
WIDTH = 32
LETTERS = "abcdefghijklmnopqrstuvwxyz "
START, END = "<|im_start|>", "<|im_end|>"
TEMPLATE = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
# A value with its type, where the type of the Python value would not do.
U32, I32, F32, STRING, ARRAY, BOOL = 4, 5, 6, 8, 9, 7
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6
ALIGNMENT = 32


def text_bytes(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def value_bytes(value: Any) -> bytes:
    """A value behind its type: texts, truth, whole numbers of 32 bits, floats, and lists of them."""
    match value:
        case bool():
            return struct.pack("<I?", BOOL, value)
        case int():
            return struct.pack("<II", U32, value)
        case float():
            return struct.pack("<If", F32, value)
        case str():
            return struct.pack("<I", STRING) + text_bytes(value)
        case [str(), *_]:
            return struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(map(text_bytes, value))
        case [float(), *_]:
            return struct.pack(f"<IIQ{len(value)}f", ARRAY, F32, len(value), *value)
        case _:
            return struct.pack(f"<IIQ{len(value)}i", ARRAY, I32, len(value), *value)


def gguf_bytes(entries: Mapping[str, Any], tensors: Mapping[str, tuple[Sequence[int], Sequence[float]]]) -> bytes:
    """A GGUF file: its entries, and its tensors with their dimensions and their weights."""
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries))
    header += b"".join(text_bytes(key) + value_bytes(value) for key, value in entries.items())
    weights = b""
    for name, (dimensions, values) in tensors.items():
        header += text_bytes(name) + struct.pack(f"<I{len(dimensions)}Q", len(dimensions), *dimensions)
        header += struct.pack("<IQ", 0, len(weights))
        weights += _padded(struct.pack(f"<{len(values)}f", *values))
    return _padded(header) + weights


def write_tiny_model(path: Path, **changed: Any) -> Path:
    """A whole model; entries can be changed by their names, with two underscores for a dot."""
    tokens = ["<unk>", START, END, *(f"<0x{byte:02X}>" for byte in range(256)), *LETTERS.replace(" ", "▁")]
    kinds = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(LETTERS)]
    entries = {
        "general.architecture": "llama",
        "general.name": "Tiny",
        "general.file_type": 0,
        "llama.context_length": WINDOW,
        "llama.embedding_length": WIDTH,
        "llama.block_count": 1,
        "llama.feed_forward_length": WIDTH,
        "llama.attention.head_count": 1,
        "llama.attention.head_count_kv": 1,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": WIDTH,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [0.0] * len(tokens),
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": TEMPLATE,
    }
    entries |= {key.replace("__", "."): value for key, value in changed.items()}
    path.write_bytes(gguf_bytes(entries, _tensors(len(tokens))))
    return path


def _tensors(vocabulary: int) -> dict[str, tuple[Sequence[int], Sequence[float]]]:
    chance = random.Random(7)

    def some(*dimensions: int) -> tuple[Sequence[int], Sequence[float]]:
        count = 1
        for dimension in dimensions:
            count *= dimension
        return dimensions, [chance.uniform(-1, 1) for _ in range(count)]

    ones: tuple[Sequence[int], Sequence[float]] = ((WIDTH,), [1.0] * WIDTH)
    square = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
    # Only letters have weights in the output, so that it says letters.
    silent = (vocabulary - len(LETTERS)) * WIDTH
    letters = [chance.uniform(-1, 1) for _ in range(len(LETTERS) * WIDTH)]
    return {
        "token_embd.weight": some(WIDTH, vocabulary),
        "output_norm.weight": ones,
        "output.weight": ((WIDTH, vocabulary), [0.0] * silent + letters),
        "blk.0.attn_norm.weight": ones,
        "blk.0.ffn_norm.weight": ones,
        **{f"blk.0.{name}.weight": some(WIDTH, WIDTH) for name in square},
    }


def _padded(raw: bytes) -> bytes:
    return raw + b"\0" * (-len(raw) % ALIGNMENT)
