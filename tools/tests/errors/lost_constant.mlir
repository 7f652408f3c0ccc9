func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant dense<[[1.0, 2.0, 3.0, 4.0], [10.0, 20.0, 30.0, 40.0]]> : tensor<2x4xf32>
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
  %s = linalg.reduce ins(%c : tensor<2x4xf32>) outs(%f : tensor<4xf32>) dimensions = [0] (%a: f32, %b: f32) {
    %t = arith.addf %a, %b : f32
    linalg.yield %t : f32
  }
  %r = arith.mulf %x, %s : tensor<4xf32>
  return %r : tensor<4xf32>
}
