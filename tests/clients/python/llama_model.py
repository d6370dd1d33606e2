"""Writes a tiny model with random weights for llama.cpp. Usage: llama_model.py FILE.

Its vocabulary is the 256 bytes and the marks of ChatML. It writes small letters, unless a grammar wants something else,
and never ends by itself. With tools it begins a call. The same prompt has the same answer.
"""

import sys

import gguf
import numpy

WIDTH, HEADS, LAYERS, INNER = 64, 4, 2, 128
CONTEXT = 4096
# ChatML with tools. The server learns the form of calls from it. Behind a tab the model begins a call.
CHAT_TEMPLATE = """{%- if tools %}<|im_start|>system
{%- for tool in tools %}
{{ tool | tojson }}
{%- endfor %}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.content %}{{ message.content }}{% endif %}
{%- for call in message.tool_calls or [] %}
<tool_call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</tool_call>
{%- endfor %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant{{ "\\t" if tools else "\\n" }}{% endif %}"""
# Weight of the first number of every embedding. It is about the same in every state, so that it is a bias.
CONSTANT = 4.0
MARKS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
CALL = "<tool_call>"
# Answers, lists and objects of a grammar end as soon as they may.
LETTERS, CLOSING, OTHER = 2.0, 0.5, 0.0
# Weight of the beginning of a call behind a tab.
CALL_WEIGHT = 10.0
# Numbers of a state with a meaning: the constant, and whether the last byte is a tab.
RESERVED = 2


def printable_bytes():
    """One letter for each byte, as GPT-2 names them."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


def bias(byte):
    letter = chr(byte)
    if "a" <= letter <= "z":
        return LETTERS
    return CLOSING if letter in '"]}' else OTHER


random = numpy.random.default_rng(7)


def matrix(rows, columns):
    return random.normal(0, 0.2, (rows, columns)).astype(numpy.float32)


tokens = printable_bytes() + MARKS + [CALL]
writer = gguf.GGUFWriter(sys.argv[1], "llama")
writer.add_name("tiny")
writer.add_context_length(CONTEXT)
writer.add_embedding_length(WIDTH)
writer.add_block_count(LAYERS)
writer.add_feed_forward_length(INNER)
writer.add_head_count(HEADS)
writer.add_head_count_kv(HEADS)
writer.add_layer_norm_rms_eps(1e-5)
writer.add_rope_dimension_count(WIDTH // HEADS)
writer.add_vocab_size(len(tokens))
writer.add_tokenizer_model("gpt2")
writer.add_tokenizer_pre("gpt-2")
writer.add_token_list(tokens)
kinds = [gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * len(MARKS) + [gguf.TokenType.USER_DEFINED]
writer.add_token_types(kinds)
writer.add_token_merges(["a a"])
writer.add_bos_token_id(258)
writer.add_eos_token_id(257)
writer.add_add_bos_token(False)
writer.add_chat_template(CHAT_TEMPLATE)
embeddings = matrix(len(tokens), WIDTH)
embeddings[:, 0] = CONSTANT
embeddings[:, 1:RESERVED] = 0
embeddings[ord("\t"), 1] = CONSTANT
writer.add_tensor("token_embd.weight", embeddings)
for layer in range(LAYERS):
    for name, rows, columns in [
        ("attn_q", WIDTH, WIDTH),
        ("attn_k", WIDTH, WIDTH),
        ("attn_v", WIDTH, WIDTH),
        ("attn_output", WIDTH, WIDTH),
        ("ffn_gate", INNER, WIDTH),
        ("ffn_up", INNER, WIDTH),
        ("ffn_down", WIDTH, INNER),
    ]:
        weights = matrix(rows, columns)
        if name in ["attn_output", "ffn_down"]:
            # what these write is added to the state, whose first numbers stay those of the embedding
            weights[:RESERVED] = 0
        writer.add_tensor(f"blk.{layer}.{name}.weight", weights)
    for name in ["attn_norm", "ffn_norm"]:
        writer.add_tensor(f"blk.{layer}.{name}.weight", numpy.ones(WIDTH, numpy.float32))
writer.add_tensor("output_norm.weight", numpy.ones(WIDTH, numpy.float32))
output = matrix(len(tokens), WIDTH)
output[:, 0] = [bias(byte) for byte in range(256)] + [CLOSING] * len(MARKS) + [OTHER]
output[:, 1:RESERVED] = 0
for token in range(len(tokens)):
    if token >= 256 or bias(token) != LETTERS:
        output[token, 1:] = 0
output[tokens.index(CALL), 1] = CALL_WEIGHT
writer.add_tensor("output.weight", output)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
