// The compiler lets the insertion happen inside the imported constant.
func.func @put() -> tensor<4x6xi32> {
  %board = util.unfoldable_constant dense<[[1,2,3,4,5,6],[11,12,13,14,15,16],[21,22,23,24,25,26],[31,32,33,34,35,36]]> : tensor<4x6xi32>
  %patch = util.unfoldable_constant dense<[[-1,-2],[-3,-4]]> : tensor<2x2xi32>
  %r = tensor.insert_slice %patch into %board[1, 2] [2, 2] [1, 1] : tensor<2x2xi32> into tensor<4x6xi32>
  return %r : tensor<4x6xi32>
}
