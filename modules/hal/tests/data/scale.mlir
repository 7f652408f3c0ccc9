func.func @scale(%a: tensor<?xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %m = linalg.generic {indexing_maps=[affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>,affine_map<(d0)->(d0)>], iterator_types=["parallel"]} ins(%a,%b:tensor<?xf32>,tensor<?xf32>) outs(%e:tensor<?xf32>) {
    ^bb0(%x:f32,%y:f32,%z:f32):
      %p = arith.mulf %x, %y : f32
      linalg.yield %p : f32 } -> tensor<?xf32>
  return %m : tensor<?xf32>
}
