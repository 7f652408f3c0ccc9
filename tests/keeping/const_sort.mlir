// An in-place sort of an imported constant; values and their positions, so that there are two outputs.
func.func @sorted() -> tensor<6xi32> {
  %v = util.unfoldable_constant dense<[5, 3, 9, 1, 7, 2]> : tensor<6xi32>
  %r = iree_linalg_ext.sort dimension(0) outs(%v : tensor<6xi32>) {
  ^bb0(%a: i32, %b: i32):
    %c = arith.cmpi slt, %a, %b : i32
    iree_linalg_ext.yield %c : i1
  } -> tensor<6xi32>
  return %r : tensor<6xi32>
}
func.func @ranked() -> (tensor<6xi32>, tensor<6xi32>) {
  %v = util.unfoldable_constant dense<[5, 3, 9, 1, 7, 2]> : tensor<6xi32>
  %p = util.unfoldable_constant dense<[0, 1, 2, 3, 4, 5]> : tensor<6xi32>
  %r:2 = iree_linalg_ext.sort dimension(0) outs(%v, %p : tensor<6xi32>, tensor<6xi32>) {
  ^bb0(%a: i32, %b: i32, %pa: i32, %pb: i32):
    %c = arith.cmpi slt, %a, %b : i32
    iree_linalg_ext.yield %c : i1
  } -> tensor<6xi32>, tensor<6xi32>
  return %r#0, %r#1 : tensor<6xi32>, tensor<6xi32>
}
