"""The digit classifier in numpy, and the two archive formats that its weights are stored in."""
import json
import struct

import numpy as np


def windows(images):
    """The nine neighbours of every pixel, zero outside, pixels scaled to 0..1: (n, 8, 8) to (n, 8, 8, 9)."""
    padded = np.pad(images / 16, ((0, 0), (1, 1), (1, 1)))
    return np.stack([padded[:, r:r + 8, c:c + 8] for r in range(3) for c in range(3)], axis=-1)


def softmax(logits):
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def scores(weights, images):
    """(n, 8, 8) pixel values to (n, 10) probabilities, in double precision."""
    w = {key: value.astype(np.float64) for key, value in weights.items()}
    x = windows(images.astype(np.float64)) @ w["convolution.weights"].reshape(9, 8) + w["convolution.bias"]
    x = np.maximum(x, 0).reshape(len(images), 4, 2, 4, 2, 8).max(axis=(2, 4)).reshape(len(images), 128)
    x = np.maximum(x @ w["hidden.weights"] + w["hidden.bias"], 0)
    return softmax(x @ w["scores.weights"] + w["scores.bias"])


def write_safetensors(path, weights):
    """u64 header length, JSON header, then the tensors back to back."""
    header, offset = {}, 0
    for key, value in weights.items():
        header[key] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [offset, offset + value.nbytes]}
        offset += value.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % 64)  # tensors start at a multiple of 64
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for value in weights.values():
            f.write(value.astype("<f4").tobytes())


def read_safetensors(path):
    data = open(path, "rb").read()
    length = struct.unpack_from("<Q", data)[0]
    tensors = json.loads(data[8:8 + length])
    body = data[8 + length:]
    return {key: np.frombuffer(body[slice(*t["data_offsets"])], "<f4").reshape(t["shape"]) for key, t in tensors.items()}


def write_irpa(path, weights):
    """IREE parameter archive, version 0: header, entry table, names, data; data at multiples of 64."""
    names, entries, data = b"", b"", b""
    for key, value in weights.items():
        data += bytes(-len(data) % 64)
        name = key.encode()
        entries += struct.pack("<QIQQQQQQQQ", 76, 2, 0, len(names), len(name), 0, 0, 64, len(data), value.nbytes)
        entries += bytes(-len(entries) % 16)
        names += name
        data += value.astype("<f4").tobytes()
    table = 96  # the header takes 88 bytes
    metadata = table + len(entries)
    storage = (metadata + len(names) + 63) // 64 * 64
    header = struct.pack("<4sHHQQQ", b"IRPA", 0, 0, 88, 0, 0)
    header += struct.pack("<QQQQQQQ", len(weights), table, len(entries), metadata, len(names), storage, len(data))
    with open(path, "wb") as f:
        f.write(header.ljust(table, b"\0") + entries + names)
        f.write(bytes(storage - f.tell()) + data)
