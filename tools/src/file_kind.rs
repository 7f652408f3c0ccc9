//! What a file is that was given as a module and is none, and what to do with it instead.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Bytes of a file that are looked at.
pub const HEAD: usize = 4096;

/// What a file is, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileKind {
    /// What it is, as the end of a sentence that begins with its path.
    pub message: String,
    /// What to do.
    pub help: String,
}

/// What the file at this path is; `None` where nothing is known.
pub fn of_path(path: &str, tool: &str) -> Option<FileKind> {
    let metadata = std::fs::metadata(path).ok()?;
    if metadata.is_dir() {
        let message = "is a folder".to_owned();
        return Some(FileKind {
            message,
            help: format!("name a module file in it, for example {}", Path::new(path).join("model.vmfb").display()),
        });
    }
    if !metadata.is_file() {
        return None;
    }
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD as u64).read_to_end(&mut head).ok()?;
    of_bytes(path, &head, metadata.len(), tool)
}

/// What a file with this path, these first bytes and this length is; `None` where nothing is known.
pub fn of_bytes(path: &str, head: &[u8], length: u64, tool: &str) -> Option<FileKind> {
    let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or("").to_ascii_lowercase();
    let compiled = if path == "-" { "model.vmfb".to_owned() } else { Path::new(path).with_extension("vmfb").display().to_string() };
    let kind = |message: &str, help: String| Some(FileKind { message: message.to_owned(), help });
    let weights = |format: &str| {
        let help = format!("give it beside the module that uses it: {tool} model.vmfb --parameters=[scope=]{path}");
        kind(&format!("holds weights ({format}), not a program"), help)
    };
    let array =
        |format: &str| kind(&format!("is {format}, not a program"), format!("give it as a value: vm-run model.vmfb --input=@{path}"));
    if length == 0 {
        return kind("is empty", "compile the program again, to a file that can be written".to_owned());
    }
    match head {
        [b'I', b'R', b'P', b'A', ..] => return weights(".irpa"),
        [b'G', b'G', b'U', b'F', ..] => return weights(".gguf"),
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => return array("an array file of numpy"),
        [0x7F, b'E', b'L', b'F', ..] => {
            return kind(
                "is an ELF file: machine code without the module around it",
                format!("compile the program to a module: {}", command("model.mlir", "model.vmfb")),
            );
        }
        [b'M', b'Z', ..] if extension == "dll" || extension == "exe" => {
            return kind(
                "is a Windows program or library",
                format!("compile the program to a module: {}", command("model.mlir", "model.vmfb")),
            );
        }
        [b'M', b'L', 0xEF, b'R', ..] => return mlir(path, &compiled, "MLIR bytecode"),
        [b'P', b'K', 3, 4, ..] if extension == "npz" => {
            let help = format!("give one of its arrays as a value: vm-run model.vmfb --input=@{path}:KEY");
            return kind("is an archive of numpy arrays, not a program", help);
        }
        [b'P', b'K', 3, 4, ..] if matches!(extension.as_str(), "pt" | "pth") => {
            return kind(
                "is a PyTorch checkpoint",
                format!("export the model to ONNX or MLIR and compile it: {}", command("model.mlir", &compiled)),
            );
        }
        [b'P', b'K', 3, 4, ..] => {
            return kind("is a ZIP archive without a module in it", "a module file of that form begins with an entry module.fb".to_owned());
        }
        [0x1F, 0x8B, ..] => return kind("is compressed with gzip", format!("unpack it first: gunzip {path}")),
        [_, _, _, _, b'T', b'F', b'L', b'3', ..] => {
            return kind(
                "is a TensorFlow Lite model",
                format!("import and compile it: iree-import-tflite {path} -o model.tosa && {}", command("model.tosa", &compiled)),
            );
        }
        _ => {}
    }
    if is_safetensors(head, length) {
        return weights(".safetensors");
    }
    let text = head_text(head);
    if extension == "onnx" || head.starts_with(&[0x08]) && find(head, b"onnx") {
        let imported = Path::new(&compiled).with_extension("mlir").display().to_string();
        let help = format!("import and compile it first:\n  iree-import-onnx {path} -o {imported}\n  {}", command(&imported, &compiled));
        return kind("is an ONNX model, not a compiled module", help);
    }
    let text = text?;
    let program = ["module {", "module @", "module attributes", "func.func", "util.func", "vm.module", "#map"];
    if extension == "vmasm" {
        return kind("is text of the VM's assembler", format!("assemble it first: iree-as-module {path} -o {compiled}"));
    }
    if matches!(extension.as_str(), "mlir" | "mlirbc" | "stablehlo" | "tosa") || program.iter().any(|mark| text.contains(mark)) {
        return mlir(path, &compiled, "MLIR text");
    }
    if matches!(extension.as_str(), "json" | "txt" | "md" | "py" | "csv" | "vmfb" | "") {
        return kind(
            "is text, not a compiled module",
            format!("modules are written by the compiler: {}", command("model.mlir", "model.vmfb")),
        );
    }
    None
}

fn mlir(path: &str, compiled: &str, form: &str) -> Option<FileKind> {
    let help = format!("compile it first:\n  {}", command(path, compiled));
    Some(FileKind { message: format!("is {form}, not a compiled module"), help })
}

/// The compiler's command line.
fn command(source: &str, compiled: &str) -> String {
    format!("iree-compile --iree-hal-target-device=local --iree-hal-local-target-device-backends=llvm-cpu {source} -o {compiled}")
}

/// The text of the first bytes; `None` where they are not text. A character may be cut at the end.
fn head_text(head: &[u8]) -> Option<&str> {
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) if error.error_len().is_none() => std::str::from_utf8(head.get(..error.valid_up_to())?).ok()?,
        Err(_) => return None,
    };
    let plain = |character: char| !character.is_control() || matches!(character, '\n' | '\r' | '\t');
    text.chars().all(plain).then_some(text)
}

fn find(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}

fn is_safetensors(head: &[u8], length: u64) -> bool {
    let Some((size, rest)) = head.split_first_chunk::<8>() else { return false };
    rest.starts_with(b"{") && u64::from_le_bytes(*size) <= length.saturating_sub(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(path: &str, head: &[u8]) -> String {
        of_bytes(path, head, head.len() as u64, "vm-run").map(|kind| kind.message).unwrap_or_default()
    }

    #[test]
    fn files_of_other_kinds_are_known_by_their_bytes() {
        for (path, head, expected) in [
            ("a.bin", &b"IRPA\0\0"[..], "holds weights (.irpa), not a program"),
            ("a", b"GGUF\x03", "holds weights (.gguf), not a program"),
            ("a", b"\x12\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F32\"", "holds weights (.safetensors), not a program"),
            ("a", b"\x93NUMPY\x01\0", "is an array file of numpy, not a program"),
            ("a.so", b"\x7FELF\x02\x01", "is an ELF file: machine code without the module around it"),
            ("a.npz", b"PK\x03\x04....", "is an archive of numpy arrays, not a program"),
            ("a.vmfb", b"PK\x03\x04....", "is a ZIP archive without a module in it"),
            ("a.mlir", b"// c\nfunc.func @f() { return }", "is MLIR text, not a compiled module"),
            ("a", b"module @m {\n", "is MLIR text, not a compiled module"),
            ("a.mlirbc", b"ML\xEFR\x06", "is MLIR bytecode, not a compiled module"),
            ("a.onnx", b"\x08\x07\x12\x07pytorch", "is an ONNX model, not a compiled module"),
            ("-", b"module {}", "is MLIR text, not a compiled module"),
            ("a.vmfb", b"", "is empty"),
            ("a.vmfb", b"\x10\0\0\0\x7F\xFF", ""),
        ] {
            assert_eq!(message(path, head), expected, "{path}");
        }
        let help = of_bytes("d/x.mlir", b"module {}", 9, "vm-run").unwrap().help;
        assert!(help.contains("iree-compile") && help.ends_with("d/x.mlir -o d/x.vmfb"), "{help}");
        let help = of_bytes("p.irpa", b"IRPA", 4, "vm-bench").unwrap().help;
        assert!(help.contains("vm-bench model.vmfb --parameters=[scope=]p.irpa"), "{help}");
    }
}
