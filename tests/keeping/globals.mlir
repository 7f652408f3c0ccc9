// A global that starts with a constant and changes, and one that is computed in place when the module is initialised.
util.global private mutable @state = dense<[1, 2, 3, 4]> : tensor<4xi32>
util.global private @order : tensor<6xi32>
util.initializer {
  %v = util.unfoldable_constant dense<[5, 3, 9, 1, 7, 2]> : tensor<6xi32>
  %r = iree_linalg_ext.sort dimension(0) outs(%v : tensor<6xi32>) {
  ^bb0(%a: i32, %b: i32):
    %c = arith.cmpi slt, %a, %b : i32
    iree_linalg_ext.yield %c : i1
  } -> tensor<6xi32>
  util.global.store %r, @order : tensor<6xi32>
  util.return
}
func.func @step(%x: tensor<1xi32>) -> tensor<4xi32> {
  %s = util.global.load @state : tensor<4xi32>
  %n = tensor.insert_slice %x into %s[1] [1] [1] : tensor<1xi32> into tensor<4xi32>
  util.global.store %n, @state : tensor<4xi32>
  return %n : tensor<4xi32>
}
func.func @ordered() -> tensor<6xi32> {
  %o = util.global.load @order : tensor<6xi32>
  return %o : tensor<6xi32>
}
