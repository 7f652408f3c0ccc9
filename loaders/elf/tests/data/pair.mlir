// Two kernels: their pointers, names and attributes are relocated tables.
func.func @add(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0 = arith.addf %a, %b : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @scale(%a: tensor<?xi32>, %b: tensor<?xi32>) -> tensor<?xi32> {
  %0 = arith.muli %a, %b : tensor<?xi32>
  return %0 : tensor<?xi32>
}
