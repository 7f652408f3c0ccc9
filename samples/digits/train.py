#!/usr/bin/env python3
"""Trains the digit classifier and writes its weights to digits.safetensors.

    pip install numpy scikit-learn
    python3 train.py

Data: the 1,797 handwritten digits of 8x8 pixels (values 0 to 16) that ship with scikit-learn.
Network: 3x3 convolution to 8 channels, ReLU, 2x2 maximum pooling, 32 hidden units, ReLU, 10 scores, softmax.
The seed is fixed, but the last bits of the weights depend on the machine's linear algebra library.
"""
import pathlib

import numpy as np
from sklearn.datasets import load_digits

import model

HERE = pathlib.Path(__file__).resolve().parent
SEED = 20230209
EPOCHS = 40
BATCH = 32
RATE = 2e-3
DECAY = 1e-4


def initial_weights(random):
    """He initialisation; the order of the keys is the order of the archives."""
    def scaled(shape, inputs):
        return random.normal(0, np.sqrt(2 / inputs), shape).astype(np.float32)
    return {
        "convolution.weights": scaled((3, 3, 1, 8), 9), "convolution.bias": np.zeros(8, np.float32),
        "hidden.weights": scaled((128, 32), 128), "hidden.bias": np.zeros(32, np.float32),
        "scores.weights": scaled((32, 10), 32), "scores.bias": np.zeros(10, np.float32),
    }


def gradients(weights, images, labels):
    """Of the mean cross entropy, by hand: the network is small enough."""
    n = len(images)
    windows = model.windows(images)                                # n 8 8 9
    kernel = weights["convolution.weights"].reshape(9, 8)
    features = np.maximum(windows @ kernel + weights["convolution.bias"], 0)
    blocks = features.reshape(n, 4, 2, 4, 2, 8)
    pooled = blocks.max(axis=(2, 4))
    flat = pooled.reshape(n, 128)
    hidden = np.maximum(flat @ weights["hidden.weights"] + weights["hidden.bias"], 0)
    d_logits = model.softmax(hidden @ weights["scores.weights"] + weights["scores.bias"])
    d_logits[np.arange(n), labels] -= 1
    d_logits /= n
    d_hidden = (d_logits @ weights["scores.weights"].T) * (hidden > 0)
    d_pooled = (d_hidden @ weights["hidden.weights"].T).reshape(n, 4, 1, 4, 1, 8)
    winners = blocks == pooled.reshape(n, 4, 1, 4, 1, 8)
    d_blocks = d_pooled * winners / winners.sum(axis=(2, 4), keepdims=True)
    d_features = d_blocks.reshape(n, 8, 8, 8) * (features > 0)
    return {
        "convolution.weights": np.tensordot(windows, d_features, ((0, 1, 2), (0, 1, 2))).reshape(3, 3, 1, 8),
        "convolution.bias": d_features.sum(axis=(0, 1, 2)),
        "hidden.weights": flat.T @ d_hidden, "hidden.bias": d_hidden.sum(axis=0),
        "scores.weights": hidden.T @ d_logits, "scores.bias": d_logits.sum(axis=0),
    }


def train(weights, images, labels, random):
    """Adam, with the weights (not the biases) pulled towards zero."""
    first = {k: np.zeros_like(v) for k, v in weights.items()}
    second = {k: np.zeros_like(v) for k, v in weights.items()}
    step = 0
    for _ in range(EPOCHS):
        order = random.permutation(len(images))
        for start in range(0, len(order), BATCH):
            chosen = order[start:start + BATCH]
            step += 1
            for key, g in gradients(weights, images[chosen], labels[chosen]).items():
                if key.endswith("weights"):
                    g = g + DECAY * weights[key]
                first[key] = 0.9 * first[key] + 0.1 * g
                second[key] = 0.999 * second[key] + 0.001 * g * g
                rate = RATE * np.sqrt(1 - 0.999 ** step) / (1 - 0.9 ** step)
                weights[key] = (weights[key] - rate * first[key] / (np.sqrt(second[key]) + 1e-8)).astype(np.float32)


def split():
    """(training images, labels, test images, labels): 1,437 and 360, drawn with a fixed seed."""
    digits = load_digits()
    order = np.random.default_rng(SEED).permutation(len(digits.images))
    images, labels = digits.images[order].astype(np.float32), digits.target[order]
    return images[:1437], labels[:1437], images[1437:], labels[1437:]


def main():
    images, labels, test_images, test_labels = split()
    random = np.random.default_rng(SEED + 1)
    weights = initial_weights(random)
    train(weights, images, labels, random)
    for name, x, y in (("training", images, labels), ("test", test_images, test_labels)):
        right = int((model.scores(weights, x).argmax(axis=1) == y).sum())
        print(f"{name}: {right} of {len(y)} right ({right / len(y):.1%})")
    model.write_safetensors(HERE / "digits.safetensors", weights)


if __name__ == "__main__":
    main()
