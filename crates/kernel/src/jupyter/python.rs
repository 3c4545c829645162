//! The helper that a Python kernel is given: it tells what no message of Jupyter's does, and runs in the session beside its code.

use serde_json::{Value, json};

use crate::kernel_files::{KernelFiles, text};

/// Where its source is, in the folder `kernels`.
const SOURCE: &str = "python/mainstay_kernel.py";
/// What keeps values, there.
const SNAPSHOT_SOURCE: &str = "python/mainstay_snapshot.py";
/// What that is called among the kernel's modules.
const SNAPSHOT_MODULE: &str = "mainstay_snapshot";
/// What it is called among the kernel's modules.
const MODULE: &str = "mainstay_kernel";
/// What stands for its file where Python says where an error comes from.
const FILE: &str = "<mainstay>";

/// Code that puts it in, and leaves no name behind; none where the program does not carry it.
pub(super) fn installation(files: KernelFiles) -> Option<String> {
    // A text in JSON is one in Python too.
    let source = Value::from(text(files, SOURCE)?);
    Some(format!("exec(compile({source}, '{FILE}', 'exec'), {{'__name__': '{MODULE}'}})"))
}

/// Code that has the helper note what a snapshot needs; none where the program does not carry it.
pub(super) fn snapshots(files: KernelFiles) -> Option<String> {
    let source = Value::from(text(files, SNAPSHOT_SOURCE)?);
    let module = format!("type(__import__('sys'))('{SNAPSHOT_MODULE}')");
    let modules = format!("__import__('sys').modules.setdefault('{SNAPSHOT_MODULE}', {module})");
    let run = format!("exec(compile({source}, '{FILE}', 'exec'), {modules}.__dict__)");
    Some(format!("{run}\n{}", call("keep_snapshots", &[])))
}

/// Whether a part of a traceback, without colours, is a frame of it.
pub(super) fn is_own_frame(part: &str) -> bool {
    part.strip_prefix("File ").is_some_and(|rest| rest.starts_with(FILE))
}

/// The call of one of its functions, with arguments that are texts, numbers, or absent.
pub(super) fn call(function: &str, arguments: &[Value]) -> String {
    let arguments = json!(arguments).to_string();
    format!("__import__('sys').modules['{MODULE}'].{function}({})", json!(arguments))
}

/// What it says of the code that ran last.
pub(super) fn report() -> String {
    call("report", &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_one_text_that_python_and_json_read_alike() {
        let called = call("check", &[json!("say \"é\"\n"), Value::Null]);
        insta::assert_snapshot!(called, @r#"__import__('sys').modules['mainstay_kernel'].check("[\"say \\\"é\\\"\\n\",null]")"#);
    }
}
