//! Files of named tensors as values: one is chosen by its key, and the whole file is never taken for the bytes of one.

use crate::support::vm_run;

const MUL: &str = "samples/hello/mul_vmvx.vmfb";
const TENSORS: &str = "tools/tests/cli/modules/tensors.safetensors";
const ARRAYS: &str = "tools/tests/cli/modules/arrays.npz";

fn product(a: &str, b: &str) -> String {
    let output = vm_run(&[MUL, &format!("--input={a}"), &format!("--input={b}")]).success();
    output.lines().last().unwrap_or_default().to_owned()
}

#[test]
fn a_tensor_is_chosen_by_its_key() {
    // Written by numpy: layer.bias is 1 2 3 4, layer.scale 10 10 10 10; a is 1 2 3 4 and b 2 2 2 2.
    assert_eq!(product(&format!("@{TENSORS}:layer.bias"), &format!("@{TENSORS}:layer.scale")), "4xf32=10 20 30 40");
    assert_eq!(product(&format!("@{ARRAYS}:a"), &format!("@{ARRAYS}:b.npy")), "4xf32=2 4 6 8");
    assert_eq!(product(&format!("4xf32=@{TENSORS}:layer.bias"), &format!("4xf32=@{ARRAYS}:b")), "4xf32=2 4 6 8");
}

#[test]
fn a_file_without_a_key_is_refused_with_its_keys() {
    let input = |text: &str| vm_run(&[MUL, &format!("--input={text}"), "--input=4xf32=1"]);
    insta::assert_snapshot!("safetensors_without_key", input(&format!("@{TENSORS}")));
    insta::assert_snapshot!("safetensors_as_raw_bytes", input(&format!("4xf32=@{TENSORS}")));
    insta::assert_snapshot!("safetensors_with_unknown_key", input(&format!("@{TENSORS}:layer.weight")));
    insta::assert_snapshot!("npz_without_key", input(&format!("@{ARRAYS}")));
    insta::assert_snapshot!("npz_of_another_shape", input(&format!("4xf32=@{ARRAYS}:c")));
    insta::assert_snapshot!("weights_as_value", input("4xf32=@samples/digits/digits.irpa"));
    insta::assert_snapshot!("key_of_another_file", input("@README.md.npz:x"));
}
