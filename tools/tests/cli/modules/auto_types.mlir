func.func @s(%a: i1) -> i1 { return %a : i1 }
func.func @t(%a: tensor<8xi4>, %b: tensor<8xui8>) -> (tensor<8xi4>, tensor<8xui8>) { return %a, %b : tensor<8xi4>, tensor<8xui8> }
