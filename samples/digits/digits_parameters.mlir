// Classifies an image of 8x8 pixels with values from 0 to 16. Result: the probability of each digit from 0 to 9.
// Written by export.py.
util.global private @"convolution.weights" = #flow.parameter.named<"model"::"convolution.weights"> : tensor<3x3x1x8xf32>
util.global private @"convolution.bias" = #flow.parameter.named<"model"::"convolution.bias"> : tensor<8xf32>
util.global private @"hidden.weights" = #flow.parameter.named<"model"::"hidden.weights"> : tensor<128x32xf32>
util.global private @"hidden.bias" = #flow.parameter.named<"model"::"hidden.bias"> : tensor<32xf32>
util.global private @"scores.weights" = #flow.parameter.named<"model"::"scores.weights"> : tensor<32x10xf32>
util.global private @"scores.bias" = #flow.parameter.named<"model"::"scores.bias"> : tensor<10xf32>
func.func @main(%image: tensor<1x8x8xf32>) -> tensor<1x10xf32> {
  %convolution_weights = util.global.load @"convolution.weights" : tensor<3x3x1x8xf32>
  %convolution_bias = util.global.load @"convolution.bias" : tensor<8xf32>
  %hidden_weights = util.global.load @"hidden.weights" : tensor<128x32xf32>
  %hidden_bias = util.global.load @"hidden.bias" : tensor<32xf32>
  %scores_weights = util.global.load @"scores.weights" : tensor<32x10xf32>
  %scores_bias = util.global.load @"scores.bias" : tensor<10xf32>
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %scale = arith.constant dense<0.0625> : tensor<1x8x8xf32>

  // Pixels from 0 to 1, one channel, a border of zeros.
  %scaled = arith.mulf %image, %scale : tensor<1x8x8xf32>
  %channel = tensor.expand_shape %scaled [[0], [1], [2, 3]] output_shape [1, 8, 8, 1] : tensor<1x8x8xf32> into tensor<1x8x8x1xf32>
  %padded = tensor.pad %channel low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%n: index, %h: index, %w: index, %c: index):
    tensor.yield %zero : f32
  } : tensor<1x8x8x1xf32> to tensor<1x10x10x1xf32>

  // Convolution that starts from the bias, ReLU, maximum of 2x2.
  %features_empty = tensor.empty() : tensor<1x8x8x8xf32>
  %features_bias = linalg.broadcast ins(%convolution_bias : tensor<8xf32>) outs(%features_empty : tensor<1x8x8x8xf32>) dimensions = [0, 1, 2]
  %features = linalg.conv_2d_nhwc_hwcf {dilations = dense<1> : tensor<2xi64>, strides = dense<1> : tensor<2xi64>}
    ins(%padded, %convolution_weights : tensor<1x10x10x1xf32>, tensor<3x3x1x8xf32>) outs(%features_bias : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %features_zero = linalg.fill ins(%zero : f32) outs(%features_empty : tensor<1x8x8x8xf32>) -> tensor<1x8x8x8xf32>
  %active = arith.maximumf %features, %features_zero : tensor<1x8x8x8xf32>
  %pooled_empty = tensor.empty() : tensor<1x4x4x8xf32>
  %pooled_lowest = linalg.fill ins(%lowest : f32) outs(%pooled_empty : tensor<1x4x4x8xf32>) -> tensor<1x4x4x8xf32>
  %window = tensor.empty() : tensor<2x2xf32>
  %pooled = linalg.pooling_nhwc_max {dilations = dense<1> : tensor<2xi64>, strides = dense<2> : tensor<2xi64>}
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
}
