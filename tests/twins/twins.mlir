// iree-compile (3.13.0) twins.mlir -o twins.vmfb --iree-input-type=torch --iree-hal-target-device=local \
//   --iree-hal-local-target-device-backends=vmvx --iree-vm-bytecode-module-strip-source-map=true \
//   --iree-vm-emit-polyglot-zip=false
//
// Imported from PyTorch, programs export a function with fences, `square_sum$async`, and a twin that waits, `square_sum`.
func.func @square_sum(%a: !torch.vtensor<[4],f32>, %b: !torch.vtensor<[4],f32>) -> !torch.vtensor<[4],f32> {
  %one = torch.constant.int 1
  %square = torch.aten.mul.Tensor %a, %a : !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32> -> !torch.vtensor<[4],f32>
  %sum = torch.aten.add.Tensor %square, %b, %one : !torch.vtensor<[4],f32>, !torch.vtensor<[4],f32>, !torch.int -> !torch.vtensor<[4],f32>
  return %sum : !torch.vtensor<[4],f32>
}
