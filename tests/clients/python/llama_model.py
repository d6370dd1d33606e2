"""Writes a tiny model with random weights for llama.cpp. Usage: llama_model.py FILE.

Its vocabulary is the 256 bytes and the marks of ChatML. It writes small letters and spaces, unless a grammar wants
something else, and never ends by itself. The same prompt has the same answer.
"""

import sys

import gguf
import numpy

WIDTH, HEADS, LAYERS, INNER = 64, 4, 2, 128
CONTEXT = 2048
# Weight of the first number of every embedding. It is about the same in every state, so that it is a bias.
CONSTANT = 4.0
MARKS = ["<|im_start|>", "<|im_end|>", "<|endoftext|>"]
# Lists and objects of a grammar end as soon as they may.
LETTERS, CLOSING, OTHER = 2.0, 0.5, 0.0


def printable_bytes():
    """One letter for each byte, as GPT-2 names them."""
    plain = [*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


def bias(byte):
    letter = chr(byte)
    if letter == " " or "a" <= letter <= "z":
        return LETTERS
    return CLOSING if letter in '"]}' else OTHER


random = numpy.random.default_rng(7)


def matrix(rows, columns):
    return random.normal(0, 0.2, (rows, columns)).astype(numpy.float32)


tokens = printable_bytes() + MARKS
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
kinds = [gguf.TokenType.NORMAL] * 256 + [gguf.TokenType.CONTROL] * len(MARKS)
writer.add_token_types(kinds)
writer.add_token_merges(["a a"])
writer.add_bos_token_id(258)
writer.add_eos_token_id(257)
writer.add_add_bos_token(False)
writer.add_chat_template(
    "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
embeddings = matrix(len(tokens), WIDTH)
embeddings[:, 0] = CONSTANT
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
        writer.add_tensor(f"blk.{layer}.{name}.weight", matrix(rows, columns))
    for name in ["attn_norm", "ffn_norm"]:
        writer.add_tensor(f"blk.{layer}.{name}.weight", numpy.ones(WIDTH, numpy.float32))
writer.add_tensor("output_norm.weight", numpy.ones(WIDTH, numpy.float32))
output = matrix(len(tokens), WIDTH)
output[:, 0] = [bias(byte) for byte in range(256)] + [-1.0] * len(MARKS)
for token, byte in enumerate(range(256)):
    if bias(byte) != LETTERS:
        output[token, 1:] = 0
output[256:, 1:] = 0
writer.add_tensor("output.weight", output)
writer.write_header_to_file()
writer.write_kv_data_to_file()
writer.write_tensors_to_file()
writer.close()
