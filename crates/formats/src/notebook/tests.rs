use proptest::prelude::*;
use serde_json::json;

use super::*;
use mainstay_model::id::SessionId;

fn code(language: &str) -> CellKind {
    CellKind::Code(Some(Language::named(language)))
}

fn cell(kind: CellKind, source: &str, line: u32) -> Cell {
    Cell { kind, source: source.to_owned(), line, may_raise: false }
}

fn cells(format: NotebookFormat, text: &str) -> Vec<Cell> {
    Notebook::read(format, text).unwrap().cells()
}

#[test]
fn a_scripts_cells_begin_at_marks_and_know_their_lines() {
    let fsharp = NotebookFormat::Script(ScriptLanguage::FSharp);
    let script =
        "open System\n\n// %% first\nlet a = 1\n\n(* --- *)\n\n\na + 1\n//%% [markdown]\n// # Text\n";
    assert_eq!(
        cells(fsharp, script),
        [
            cell(CellKind::Code(None), "open System", 1),
            cell(CellKind::Code(None), "let a = 1", 4),
            cell(CellKind::Code(None), "a + 1", 9),
            cell(CellKind::Markdown, "// # Text", 11),
        ]
    );
    assert_eq!(cells(fsharp, "1 + 1"), [cell(CellKind::Code(None), "1 + 1", 1)]);
    assert_eq!(cells(fsharp, "\u{feff}\n"), []);
    assert_eq!(cells(fsharp, "(* -- *)\n  // %%\n# %%").len(), 1, "none is a mark");
}

#[test]
fn a_scripts_marks_are_comments_of_its_language() {
    let read = |file: &str, text: &str| {
        let notebook = Notebook::read(NotebookFormat::of_file(Path::new(file)).unwrap(), text).unwrap();
        let sources: Vec<String> = notebook.cells().into_iter().map(|cell| cell.source).collect();
        let kinds: Vec<String> = notebook.kinds().iter().map(ToString::to_string).collect();
        (sources.join("|"), kinds.join(" "))
    };
    let hashes = "#!/bin/sh\n1\n# %% a\n2\n#%%\n3\n// %%\n(* --- *)";
    let parted = "#!/bin/sh\n1|2|3\n// %%\n(* --- *)".to_owned();
    assert_eq!(read("a.py", hashes), (parted.clone(), "python".to_owned()));
    assert_eq!(read("a.sh", hashes), (parted, "bash".to_owned()));
    let slashes = "1\n// %%\n2\n# %%\n(* --- *)";
    let parted = "1|2\n# %%\n(* --- *)".to_owned();
    assert_eq!(read("a.ts", slashes), (parted.clone(), "typescript".to_owned()));
    assert_eq!(read("a.js", slashes), (parted, "javascript typescript".to_owned()));
    assert_eq!(NotebookFormat::of_file(Path::new("a.rs")), None);
}

#[test]
fn a_dibs_cells_begin_with_their_language() {
    let dib = "#!meta\n\n{\"kernelInfo\":{\"defaultKernelName\":\"fsharp\"}}\n\n#!markdown\n\n# A\n\n#!fsharp\n\n#!time\n1\n\n#!c#\n2\n";
    assert_eq!(
        cells(NotebookFormat::Dib, dib)[1..],
        [
            cell(CellKind::Markdown, "# A", 7),
            cell(code("fsharp"), "#!time\n1", 11),
            cell(code("csharp"), "2", 15),
        ]
    );
    assert_eq!(
        cells(NotebookFormat::Dib, "1\n#!meta\n{\"kernelInfo\":{\"defaultKernelName\":\"F#\"}}")[0].kind,
        code("fsharp")
    );
    assert_eq!(cells(NotebookFormat::Dib, "1")[0].kind, code("csharp"));
}

#[test]
fn cells_of_a_dib_begin_with_what_it_calls_its_kernels_too() {
    let kernels = r##"{"kernelInfo":{"defaultKernelName":"fs2","items":[
        {"name":"fs2","languageName":"F#","aliases":["f"]},
        {"name":"orders","languageName":"T-SQL","aliases":["Shop"]}]}}"##;
    let dib =
        format!("#!meta\n\n{kernels}\n\n#!f\n1\n#!SHOP\nselect 1\n#!orders\nselect 2\n#!fs\n2\n#!other\n3\n");
    let kinds: Vec<_> = cells(NotebookFormat::Dib, &dib).into_iter().skip(1).map(|cell| cell.kind).collect();
    assert_eq!(kinds, [code("fsharp"), code("t-sql"), code("t-sql"), code("fsharp")]);
    let text = dib.replace("#!meta\n\n", "#!meta\n").replace(kernels, &format!("{kernels}\n#!fs2\n4"));
    assert_eq!(cells(NotebookFormat::Dib, &text)[1], cell(code("fsharp"), "4", 6));
}

#[test]
fn a_notebook_has_cells_for_what_it_calls_its_kernels() {
    let notebook = json!({
        "nbformat": 4, "nbformat_minor": 5,
        "metadata": {
            "kernelspec": { "name": ".net-fsharp" },
            "polyglot_notebook": { "kernelInfo": { "items": [{ "name": "orders", "languageName": "T-SQL", "aliases": ["shop"] }] } },
        },
        "cells": [
            { "cell_type": "code", "metadata": {}, "source": "#!shop\nselect 1", "outputs": [], "execution_count": null },
            { "cell_type": "code", "metadata": { "polyglot_notebook": { "kernelName": "orders" } }, "source": "select 2", "outputs": [], "execution_count": null },
        ],
    });
    let cells = cells(NotebookFormat::Ipynb, &notebook.to_string());
    assert_eq!(cells, [cell(code("t-sql"), "select 1", 2), cell(code("t-sql"), "select 2", 1)]);
}

#[test]
fn a_line_that_would_begin_a_cell_of_a_dib_is_set_apart() {
    let text = dib_text(&Language::named("fsharp"), [(code("fsharp"), "\"\"\"\n#!fsharp\n\"\"\"")]);
    assert_eq!(
        cells(NotebookFormat::Dib, &text)[1..],
        [cell(code("fsharp"), "\"\"\"\n #!fsharp\n\"\"\"", 7)]
    );
}

fn jupyter() -> Value {
    json!({
        "nbformat": 4, "nbformat_minor": 5,
        "metadata": { "kernelspec": { "name": ".net-fsharp", "language": "F#" }, "unknown": [1.5] },
        "cells": [
            { "cell_type": "markdown", "id": "a", "metadata": {}, "source": "# A", "attachments": { "x.png": {} } },
            { "cell_type": "code", "id": "b", "metadata": { "tags": ["t"] }, "source": ["let a = 1\n", "a"], "outputs": [], "execution_count": null },
            { "cell_type": "code", "id": "c", "metadata": {}, "source": "#!csharp\n1", "outputs": [], "execution_count": 7 },
            { "cell_type": "raw", "id": "d", "metadata": {}, "source": [] },
        ],
    })
}

#[test]
fn of_a_jupyter_notebook_only_the_outputs_that_are_set_change() {
    let mut notebook = Notebook::read(NotebookFormat::Ipynb, &jupyter().to_string()).unwrap();
    assert_eq!(
        notebook.cells(),
        [
            cell(CellKind::Markdown, "# A", 1),
            cell(code("fsharp"), "let a = 1\na", 1),
            cell(code("csharp"), "1", 2),
            cell(CellKind::Other, "", 1),
        ]
    );
    let outputs = vec![json!({ "output_type": "stream", "name": "stdout", "text": ["hi\n"] })];
    notebook.set_outputs(0, 1, outputs.clone());
    notebook.set_outputs(1, 1, outputs.clone());
    let mut expected = jupyter();
    expected["cells"][1]["outputs"] = Value::Array(outputs);
    expected["cells"][1]["execution_count"] = json!(1);
    assert_eq!(serde_json::from_str::<Value>(&notebook.text()).unwrap(), expected);
    assert!(notebook.text().starts_with("{\n \"cells\": [\n  {\n"), "as Jupyter indents it");
}

/// A notebook of another kernel than .NET Interactive.
fn python(metadata: &Value) -> Notebook {
    let code = |source: Value, tags: Value| json!({ "cell_type": "code", "metadata": { "tags": tags }, "source": source, "outputs": [] });
    let cells = [
        code(json!("\n%%bash\necho 1\n\n"), json!([])),
        code(json!(["#!python\n", "1"]), json!(["raises-exception"])),
        code(json!(" \n"), Value::Null),
    ];
    let json = json!({ "nbformat": 4, "cells": cells, "metadata": metadata });
    Notebook::read(NotebookFormat::Ipynb, &json.to_string()).unwrap()
}

#[test]
fn a_jupyter_notebooks_code_is_its_kernels_as_it_is() {
    let notebook = python(&json!({ "kernelspec": { "name": "python3" } }));
    let as_it_is = |source: &str| cell(CellKind::Code(None), source, 1);
    let cells = notebook.cells();
    assert_eq!(
        cells,
        [
            as_it_is("\n%%bash\necho 1\n\n"),
            Cell { may_raise: true, ..as_it_is("#!python\n1") },
            as_it_is(" \n")
        ]
    );
    assert_eq!(cells.iter().map(Cell::is_code).collect::<Vec<_>>(), [true, true, false]);
}

#[test]
fn a_jupyter_notebook_names_what_runs_it() {
    let kinds = |metadata: Value| -> Vec<String> {
        python(&metadata).kinds().iter().map(ToString::to_string).collect()
    };
    let named = |name: &str, language: &str| json!({ "kernelspec": { "name": name, "language": language } });
    assert_eq!(kinds(named("python3", "Python")), ["python3", "python"]);
    assert_eq!(kinds(named("my env", "python")), ["python"], "what can be no kind is none");
    assert_eq!(kinds(json!({ "language_info": { "name": "R" } })), ["r"]);
    assert_eq!(kinds(named(".net-fsharp", "F#")), ["fsharp"]);
    assert_eq!(kinds(named(".net-csharp", "C#")), ["fsharp"], "which its F# cells are for");
    assert_eq!(kinds(json!({})), Vec::<String>::new());
}

#[test]
fn what_is_no_jupyter_notebook_is_refused_with_its_line() {
    let refused = |text: &str| Notebook::read(NotebookFormat::Ipynb, text).unwrap_err().to_string();
    insta::assert_snapshot!(
        [
            "{\n\"nbformat\": 4,\n cells",
            "[]",
            r#"{"nbformat":3,"worksheets":[]}"#,
            r#"{"cells":[]}"#,
            r#"{"nbformat":4}"#,
            r#"{"nbformat":4,"cells":[{"cell_type":"code","source":[1]}]}"#,
        ]
        .map(refused)
        .join("\n"),
        @r"
        line 3 of the notebook cannot be read: key must be a string at column 2
        line 1 of the notebook cannot be read: invalid type: sequence, expected a map at column 0
        line 1 of the notebook cannot be read: it is of version 3, not 4
        line 1 of the notebook cannot be read: it does not say its `nbformat`
        line 1 of the notebook cannot be read: it has no `cells`
        line 1 of the notebook cannot be read: cell 1 lacks its `cell_type` or its `source`
        "
    );
}

#[test]
fn a_steps_name_is_that_of_all_that_comes_to_it() {
    let session = SessionId::from_uuid(uuid::Uuid::nil());
    let steps = |text| {
        Steps::new(session, "/a.fsx", &[], &cells(NotebookFormat::Script(ScriptLanguage::FSharp), text))
    };
    let (before, after) = (steps("1\n// %%\n2\n// %%\n3"), steps("\n1\n// %% titled\n4\n// %%\n3"));
    let same = [0, 1, 2].map(|cell| before.command(cell, 0) == after.command(cell, 0));
    assert_eq!(same, [true, false, false]);
    assert_ne!(before.command(0, 0), before.command(0, 1));
    assert!(before.command(3, 0).is_err());
    let elsewhere =
        Steps::new(session, "/b.fsx", &[], &cells(NotebookFormat::Script(ScriptLanguage::FSharp), "1"));
    assert_ne!(before.command(0, 0), elsewhere.command(0, 0));
}

proptest! {
    #[test]
    fn a_text_is_written_as_it_was_read(text in r"(?s)(// %%.{0,5}\n|\(\* --- \*\)\n|#!fsharp\r?\n|#!meta\n|#!markdown\n|.|\n|let a = 1\n){0,30}") {
        for format in [NotebookFormat::Script(ScriptLanguage::FSharp), NotebookFormat::Dib] {
            let notebook = Notebook::read(format, &text).unwrap();
            prop_assert_eq!(notebook.text(), text.clone());
            // A cell stands at the line that it says.
            for cell in notebook.cells().iter().filter(|cell| !cell.source.is_empty()) {
                let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
                let from: String = text.split_inclusive('\n').skip(cell.line as usize - 1).collect();
                prop_assert!(from.starts_with(&cell.source), "{:?} in {:?}", cell, from);
            }
        }
    }

    #[test]
    fn anything_is_a_jupyter_notebook_or_refused(text in r#"(?s)([{}\[\],:"]|"cells"|"nbformat"|4|"cell_type"|"code"|"source"|.){0,40}"#) {
        Notebook::read(NotebookFormat::Ipynb, &text).ok();
    }

    #[test]
    fn a_jupyter_notebook_is_read_as_it_was_written(sources in prop::collection::vec(("(code|markdown|raw)", r"(?s).{0,20}"), 0..6)) {
        let cells: Vec<Value> = sources.iter().map(|(kind, source)| json!({ "cell_type": kind, "source": source, "kept": { "é": 1 } })).collect();
        let json = json!({ "nbformat": 4, "cells": cells, "metadata": { "kept": true } });
        let notebook = Notebook::read(NotebookFormat::Ipynb, &json.to_string()).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&notebook.text()).unwrap(), json);
        prop_assert_eq!(Notebook::read(NotebookFormat::Ipynb, &notebook.text()).unwrap(), notebook);
    }

    #[test]
    fn a_dib_of_cells_is_read_as_them(sources in prop::collection::vec((any::<bool>(), "[deghi#!]{1,8}(\n[deghi #!]{0,8}[deghi]){0,3}"), 0..6)) {
        let language = Language::named("fsharp");
        let given = sources.iter().map(|(is_code, source)| (if *is_code { code("fsharp") } else { CellKind::Markdown }, source.as_str()));
        let text = dib_text(&language, given.clone());
        let read = cells(NotebookFormat::Dib, &text);
        let read: Vec<_> = read[1..].iter().map(|cell| (cell.kind.clone(), cell.source.as_str())).collect();
        prop_assert_eq!(read, given.collect::<Vec<_>>());
    }
}
