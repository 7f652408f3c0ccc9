// Functions that work in place on their argument.
func.func @upd(%acc: tensor<16xf32>) -> tensor<16xf32> {
  %v = arith.constant dense<7.0> : tensor<4xf32>
  %q = tensor.insert_slice %v into %acc[4][4][1] : tensor<4xf32> into tensor<16xf32>
  return %q : tensor<16xf32>
}
func.func @product(%lhs: tensor<2x2xf32>, %rhs: tensor<2x2xf32>, %acc: tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>) {
  %r = linalg.matmul ins(%lhs, %rhs : tensor<2x2xf32>, tensor<2x2xf32>) outs(%acc : tensor<2x2xf32>) -> tensor<2x2xf32>
  return %r, %acc : tensor<2x2xf32>, tensor<2x2xf32>
}
func.func @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
