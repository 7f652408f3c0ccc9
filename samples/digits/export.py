#!/usr/bin/env python3
"""Writes what is derived from the weights in digits.safetensors: the two MLIR programs, digits.irpa, the inputs
and what numpy computes for them (expected.json).

    python3 export.py
"""
import json
import pathlib

import numpy as np

import model
import train

HERE = pathlib.Path(__file__).resolve().parent

PROGRAM = """\
// Classifies an image of 8x8 pixels with values from 0 to 16. Result: the probability of each digit from 0 to 9.
// Written by export.py.
{globals}func.func @main(%image: tensor<1x8x8xf32>) -> tensor<1x10xf32> {{
{weights}  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %scale = arith.constant dense<0.0625> : tensor<1x8x8xf32>

  // Pixels from 0 to 1, one channel, a border of zeros.
  %scaled = arith.mulf %image, %scale : tensor<1x8x8xf32>
  %channel = tensor.expand_shape %scaled [[0], [1], [2, 3]] output_shape [1, 8, 8, 1] : tensor<1x8x8xf32> into tensor<1x8x8x1xf32>
  %padded = tensor.pad %channel low[0, 1, 1, 0] high[0, 1, 1, 0] {{
  ^bb0(%n: index, %h: index, %w: index, %c: index):
    tensor.yield %zero : f32
  }} : tensor<1x8x8x1xf32> to tensor<1x10x10x1xf32>

  // Convolution that starts from the bias, ReLU, maximum of 2x2.
  %features_empty = tensor.empty() : tensor<1x8x8x8xf32>
  %features_bias = linalg.broadcast ins(%convolution_bias : tensor<8xf32>) outs(%features_empty : tensor<1x8x8x8xf32>) dimensions = [0, 1, 2]
  %features = linalg.conv_2d_nhwc_hwcf {{dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}}
    ins(%padded, %convolution_weights : tensor<1x10x10x1xf32>, tensor<3x3x1x8xf32>) outs(%features_bias : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %features_zero = linalg.fill ins(%zero : f32) outs(%features_empty : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %active = arith.maximumf %features, %features_zero : tensor<1x8x8x8xf32>
  %pooled_empty = tensor.empty() : tensor<1x4x4x8xf32>
  %pooled_lowest = linalg.fill ins(%lowest : f32) outs(%pooled_empty : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %pooled = linalg.pooling_nhwc_max {{dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}}
    ins(%active, %window : tensor<1x8x8x8xf32>, tensor<2x2xf32>) outs(%pooled_lowest : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>

  // 128 features to 32 hidden units, ReLU.
  %flat = tensor.collapse_shape %pooled [[0], [1, 2, 3]] : tensor<1x4x4x8xf32> into tensor<1x128xf32>
  %hidden_empty = tensor.empty() : tensor<1x32xf32>
  %hidden_bias_row = linalg.broadcast ins(%hidden_bias : tensor<32xf32>) outs(%hidden_empty : tensor<1x32xf32>) dimensions = [0]
  %hidden = linalg.matmul ins(%flat, %hidden_weights : tensor<1x128xf32>, tensor<128x32xf32>) outs(%hidden_bias_row : tensor<1x32xf32>) -> tensor<1x32xf32>
  %hidden_zero = linalg.fill ins(%zero : f32) outs(%hidden_empty : tensor<1x32xf32>) -> tensor<1x32xf32>
  %hidden_active = arith.maximumf %hidden, %hidden_zero : tensor<1x32xf32>

  // 32 hidden units to 10 scores, softmax.
  %scores_empty = tensor.empty() : tensor<1x10xf32>
  %scores_bias_row = linalg.broadcast ins(%scores_bias : tensor<10xf32>) outs(%scores_empty : tensor<1x10xf32>) dimensions = [0]
  %scores = linalg.matmul ins(%hidden_active, %scores_weights : tensor<1x32xf32>, tensor<32x10xf32>) outs(%scores_bias_row : tensor<1x10xf32>) -> tensor<1x10xf32>
  %probabilities = linalg.softmax dimension(1) ins(%scores : tensor<1x10xf32>) outs(%scores_empty : tensor<1x10xf32>) -> tensor<1x10xf32>
  return %probabilities : tensor<1x10xf32>
}}
"""


def kind(value):
    return "tensor<" + "".join(f"{d}x" for d in value.shape) + "f32>"


def baked(weights):
    """The program with its weights as constants."""
    lines = [f"  %{key.replace('.', '_')} = arith.constant dense<\"0x{value.astype('<f4').tobytes().hex().upper()}\"> : {kind(value)}\n"
             for key, value in weights.items()]
    return PROGRAM.format(globals="", weights="".join(lines))


def external(weights):
    """The program with its weights as parameters of the scope `model`."""
    declared = [f"util.global private @\"{key}\" = #flow.parameter.named<\"model\"::\"{key}\"> : {kind(value)}\n" for key, value in weights.items()]
    loads = [f"  %{key.replace('.', '_')} = util.global.load @\"{key}\" : {kind(value)}\n" for key, value in weights.items()]
    return PROGRAM.format(globals="".join(declared), weights="".join(loads))


def main():
    weights = model.read_safetensors(HERE / "digits.safetensors")
    (HERE / "digits.mlir").write_text(baked(weights))
    (HERE / "digits_parameters.mlir").write_text(external(weights))
    model.write_irpa(HERE / "digits.irpa", weights)

    _, _, images, labels = train.split()
    right = int((model.scores(weights, images).argmax(axis=1) == labels).sum())
    cases = []
    for digit in range(10):  # the first image of each digit that training did not see
        image = images[int(np.flatnonzero(labels == digit)[0])].reshape(1, 8, 8)
        name = f"digit_{digit}.npy"
        np.save(HERE / name, image)
        scores = model.scores(weights, image)[0]
        cases.append({"input": name, "label": digit, "class": int(scores.argmax()), "scores": [float(f"{v:.9g}") for v in scores]})
    lines = ",\n".join("  " + json.dumps(case) for case in cases)
    (HERE / "expected.json").write_text(f'{{"function": "main", "atol": 1e-5, "test_images": {len(labels)}, "test_right": {right}, "cases": [\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
