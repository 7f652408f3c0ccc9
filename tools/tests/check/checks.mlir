// Test functions whose outcome their names tell. Compile with build.sh.
module @checks {
func.func @passes_equal() {
  %values = util.unfoldable_constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %sum = arith.addf %values, %values : tensor<4xf32>
  check.expect_eq_const(%sum, dense<[2.0, 4.0, 6.0, 8.0]> : tensor<4xf32>) : tensor<4xf32>
  return
}
func.func @fails_equal() {
  %values = util.unfoldable_constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %sum = arith.addf %values, %values : tensor<4xf32>
  check.expect_eq_const(%sum, dense<[2.0, 4.0, 7.0, 8.0]> : tensor<4xf32>) : tensor<4xf32>
  check.expect_eq_const(%sum, dense<[2.0, 4.0, 6.0, 9.0]> : tensor<4xf32>) : tensor<4xf32>
  return
}
func.func @passes_almost() {
  %values = util.unfoldable_constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %sum = arith.addf %values, %values : tensor<4xf32>
  check.expect_almost_eq_const(%sum, dense<[2.00005, 4.0, 6.0, 8.0]> : tensor<4xf32>) : tensor<4xf32>
  return
}
func.func @fails_almost() {
  %values = util.unfoldable_constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %sum = arith.addf %values, %values : tensor<4xf32>
  check.expect_almost_eq_const(%sum, dense<[2.5, 4.0, 6.0, 8.0]> : tensor<4xf32>) : tensor<4xf32>
  return
}
func.func @passes_truth() {
  %yes = util.unfoldable_constant 1 : i32
  %no = util.unfoldable_constant 0 : i32
  %all = util.unfoldable_constant dense<1> : tensor<3xi32>
  check.expect_true(%yes) : i32
  check.expect_false(%no) : i32
  check.expect_all_true(%all) : tensor<3xi32>
  return
}
func.func @fails_truth() {
  %yes = util.unfoldable_constant 1 : i32
  %no = util.unfoldable_constant 0 : i32
  %all = util.unfoldable_constant dense<[1, 0, 1]> : tensor<3xi32>
  check.expect_true(%no) : i32
  check.expect_false(%yes) : i32
  check.expect_all_true(%all) : tensor<3xi32>
  return
}
}
