// Scatters sums into an imported constant in place.
func.func @grow() -> tensor<8xi32> {
  %v = util.unfoldable_constant dense<[1, 2, 3, 4, 5, 6, 7, 8]> : tensor<8xi32>
  %i = util.unfoldable_constant dense<[[1], [3], [5]]> : tensor<3x1xi32>
  %u = util.unfoldable_constant dense<[100, 200, 300]> : tensor<3xi32>
  %r = iree_linalg_ext.scatter dimension_map = [0] unique_indices(true) ins(%u, %i : tensor<3xi32>, tensor<3x1xi32>) outs(%v : tensor<8xi32>) {
  ^bb0(%new: i32, %old: i32):
    %s = arith.addi %new, %old : i32
    iree_linalg_ext.yield %s : i32
  } -> tensor<8xi32>
  return %r : tensor<8xi32>
}
// Depends on its argument whether anything is written, and where.
func.func @grow_at(%i: tensor<3x1xi32>, %u: tensor<3xi32>) -> tensor<8xi32> {
  %v = util.unfoldable_constant dense<[1, 2, 3, 4, 5, 6, 7, 8]> : tensor<8xi32>
  %r = iree_linalg_ext.scatter dimension_map = [0] unique_indices(true) ins(%u, %i : tensor<3xi32>, tensor<3x1xi32>) outs(%v : tensor<8xi32>) {
  ^bb0(%new: i32, %old: i32):
    %s = arith.addi %new, %old : i32
    iree_linalg_ext.yield %s : i32
  } -> tensor<8xi32>
  return %r : tensor<8xi32>
}
