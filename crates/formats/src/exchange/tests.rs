//! Files that are written and read again.

use super::item::OF_THE_FILE;
use super::*;
use mainstay_model::Timestamp;
use mainstay_model::entry::Origin;
use mainstay_model::error::Error;
use mainstay_model::event::EventBody;
use mainstay_model::id::{JobId, Seq, SessionId, SessionKind};

use crate::notebook::ScriptLanguage;
use mainstay_model::display::{Bundle, Display};
use mainstay_model::eval::{EvalResult, Failure, RaisedError};
use mainstay_model::event::{CancelEnding, OutputStream};
use mainstay_model::fingerprint::CommandFingerprint;
use mainstay_model::id::CommandId;

fn said(at: i64, body: EventBody) -> ExportedEvent {
    ExportedEvent { at: Timestamp::from_second(at).unwrap(), body }
}

fn bodies() -> Vec<ExportedEvent> {
    let job = JobId::from_uuid(uuid::Uuid::from_u128(1));
    let requested = EventBody::EvalRequested {
        job,
        command: CommandId::new("c").unwrap(),
        fingerprint: CommandFingerprint::from_stored("f".to_owned()),
        key: None,
        deadline: None,
        grants: None,
        code: "1 + 1".to_owned(),
        file: None,
        command_line: None,
        withheld: false,
        origin: None,
    };
    let printed =
        |job| EventBody::OutputProduced { job, stream: OutputStream::Stdout, text: "hello\n".to_owned() };
    let result = EvalResult { display: "val it : int = 2".to_owned(), ..EvalResult::default() };
    let completed = EventBody::EvalCompleted { job, result, changes_state: false, duration_ms: 1 };
    let bodies = [
        EventBody::SessionStopped,
        requested,
        EventBody::SessionRenamed { name: "other".to_owned() },
        printed(Some(job)),
        printed(None),
        completed,
        EventBody::SessionHardReset,
    ];
    (1..).zip(bodies).map(|(at, body)| said(at, body)).collect()
}

/// The file of a session with these events.
fn file(bodies: &[ExportedEvent]) -> String {
    let kind = SessionKind::fsharp();
    let header = Header::new("lab".to_owned(), kind.clone(), None, "/lab".to_owned(), None);
    let (mut lines, mut collector) = (Lines::default(), Collector::new(kind));
    let mut file = lines.header(&header);
    for (said, seq) in bodies.iter().zip(1..) {
        let event = said.event(SessionId::from_uuid(uuid::Uuid::nil()), Seq(seq));
        file.extend(collector.push(&event).map(|item| lines.item(&item)));
    }
    file + &lines.end()
}

#[test]
fn a_file_has_the_cells_and_nothing_else() {
    insta::assert_snapshot!(file(&bodies()), @r#"
    {"format":"mainstay.session","version":1,"name":"lab","kind":"fsharp","workingDirectory":"/lab"}
    {"item":"cell","entries":["8fd85fb74390de7fbbe8d0cf4583832090dca2c1929d2f0666bfca86d33732f8","b97da08a745b78269467fdfcf2da9a6889238a075ec2b61a3cf52d059832bd71"],"events":[{"at":"1970-01-01T00:00:02Z","kind":"evalRequested","body":{"job":"00000000-0000-0000-0000-000000000001","command":"c","fingerprint":"f","code":"1 + 1"}},{"at":"1970-01-01T00:00:04Z","kind":"outputProduced","body":{"job":"00000000-0000-0000-0000-000000000001","stream":"stdout","text":"hello\n"}},{"at":"1970-01-01T00:00:06Z","kind":"evalCompleted","body":{"job":"00000000-0000-0000-0000-000000000001","result":{"display":"val it : int = 2"},"changesState":false,"durationMs":1}}]}
    {"item":"reset","at":"1970-01-01T00:00:07Z"}
    {"item":"end","items":2,"hash":"185e1d56ce0d61712dc14da42a7ebe8a91a580c6b83745b93becab1f28f5cb01"}
    "#);
}

#[test]
fn a_label_is_of_an_entry_before_it() {
    let cell = read(&file(&bodies())).unwrap().items.swap_remove(0);
    let read_with = |entry, label: &str| {
        let label = Item::Label { at: Timestamp::UNIX_EPOCH, entry, label: label.to_owned() };
        let mut lines = Lines::default();
        let file = lines.header(&header()) + &lines.item(&cell) + &lines.item(&label) + &lines.end();
        read(&file).map(|imported| placed(imported.items, OF_THE_FILE, Seq(3)).pop().unwrap().body)
    };
    let entry = Origin { session: OF_THE_FILE, number: 1 };
    let label = Some("the good one".to_owned());
    assert_eq!(read_with(1, "the good one"), Ok(EventBody::EntryLabeled { entry, label }));
    for (entry, label) in [(2, "the good one"), (1, " "), (1, "a\nb")] {
        let Err(Error::ImportInvalid { line: 3, reason }) = read_with(entry, label) else {
            panic!("{entry} {label:?} was read")
        };
        assert_eq!(reason, "it is no label of an entry before it");
    }
}

#[test]
fn what_is_read_is_exported_again_byte_by_byte() {
    let first = file(&bodies());
    let imported = read(&first).unwrap();
    let events = placed(imported.items, OF_THE_FILE, Seq(3));
    assert_eq!(
        events.iter().map(|event| event.causation).collect::<Vec<_>>(),
        [None, Some(Seq(3)), Some(Seq(3)), None]
    );
    let bodies: Vec<ExportedEvent> =
        events.into_iter().map(|event| ExportedEvent { at: event.at, body: event.body }).collect();
    assert_eq!(file(&bodies), first);
    assert_eq!(read(&file(&[])).unwrap().items, []);
}

#[test]
fn a_file_that_was_changed_anywhere_is_refused() {
    let file = file(&bodies());
    for (index, byte) in file.bytes().enumerate() {
        for other in [byte ^ 1, b' '] {
            let mut changed = file.clone().into_bytes();
            changed[index] = other;
            if let (Ok(changed), true) = (String::from_utf8(changed), other != byte) {
                let is_last_line_end = index + 1 == file.len();
                assert!(read(&changed).is_err() || is_last_line_end, "byte {index}: {changed}");
            }
        }
        let cut = read(&file[..index]);
        assert!(cut.is_err() || index + 1 == file.len(), "cut at {index}");
    }
    assert!(read(&(file.clone() + "\n")).is_err());
    let newer = file.replacen("\"version\":1", "\"version\":2", 1);
    let Err(Error::ImportInvalid { line: 1, reason }) = read(&newer) else { panic!("it was read") };
    assert_eq!(reason, "it has version 2, and this program knows 1");
}

/// A session in which a cell is rejected, one raises and one prints a fence, after a reset.
fn items() -> Vec<Item> {
    let mut items = read(&file(&bodies())).unwrap().items;
    let job = JobId::from_uuid(uuid::Uuid::from_u128(1));
    let Item::Cell { events, .. } = items[0].clone() else { panic!("no cell") };
    let coded = |text: &str, end: Vec<EventBody>| {
        let mut said = vec![events[0].clone()];
        let EventBody::EvalRequested { code, .. } = &mut said[0].body else { panic!("no request") };
        *code = text.to_owned();
        said.extend(end.into_iter().map(|body| ExportedEvent { at: Timestamp::UNIX_EPOCH, body }));
        Item::Cell { entries: Vec::new(), events: said }
    };
    let failed = |failure| EventBody::EvalFailed {
        job,
        failure,
        result: EvalResult::default(),
        changes_state: false,
        duration_ms: 1,
    };
    let raised = RaisedError {
        kind: "E".to_owned(),
        message: "no".to_owned(),
        stack: Some("at f\nat g".to_owned()),
        coloured_stack: None,
    };
    let printed =
        EventBody::OutputProduced { job: Some(job), stream: OutputStream::Stderr, text: "```".to_owned() };
    items.push(coded("oops\nagain", vec![failed(Failure::Rejected)]));
    items.push(coded("f ()", vec![printed, failed(Failure::Raised { error: raised })]));
    items.push(coded("let x = 1\n", vec![events.last().unwrap().body.clone()]));
    items
}

/// A cell that prints, shows a bar twice and a picture, prints, and has a value in two forms.
fn showing() -> Vec<ExportedEvent> {
    let job = JobId::from_uuid(uuid::Uuid::from_u128(1));
    let shows = |id: Option<&str>, is_value, forms: serde_json::Value| {
        let id = id.map(|id| mainstay_model::id::DisplayId::new(id).unwrap());
        let data: Bundle = serde_json::from_value(forms).unwrap();
        EventBody::OutputDisplayed {
            job: Some(job),
            display: Box::new(Display { id, is_value, is_update: false, is_in_place: false, data }),
        }
    };
    let mut said = bodies();
    let (before, completed) = (said[3].clone(), said[5].clone());
    let table = serde_json::json!({ "schema": { "fields": [{ "name": "x" }] }, "data": [{ "x": 1 }] });
    let shown = [
        shows(Some("bar"), false, serde_json::json!({ "text/plain": "10 %" })),
        shows(None, false, serde_json::json!({ "image/png": "iVBORw==" })),
        before.body.clone(),
        shows(Some("bar"), false, serde_json::json!({ "text/plain": "100 %\ndone" })),
        shows(
            None,
            true,
            serde_json::json!({ "application/vnd.dataresource+json": table, "text/plain": "x" }),
        ),
    ];
    said.truncate(4);
    said.extend(shown.map(|body| ExportedEvent { at: before.at, body }));
    said.push(completed);
    said
}

#[test]
fn displays_come_back_from_a_file() {
    let first = file(&showing());
    let imported = read(&first).unwrap();
    assert_eq!(imported.items[0].entries(), 5);
    let events = placed(imported.items, OF_THE_FILE, Seq(3));
    let bodies: Vec<ExportedEvent> =
        events.into_iter().map(|event| ExportedEvent { at: event.at, body: event.body }).collect();
    assert_eq!(file(&bodies), first);
}

#[test]
fn people_see_displays_in_markdown_where_they_were_shown() {
    insta::assert_snapshot!(markdown(&header(), &kernel(), &read(&file(&showing())).unwrap().items), @"
    # lab

    ```fsharp
    1 + 1
    ```

    ```text
    hello
    ```

    ```text
    100 %
    done
    ```

    ![image/png, 4 bytes](data:image/png;base64,iVBORw==)

    ```text
    hello
    val it : int = 2
    ```

    | x |
    | --- |
    | 1 |
    ");
}

#[test]
fn people_see_a_progress_bar_as_one_line_and_a_notebook_has_all_of_it() {
    let mut said = bodies();
    if let EventBody::OutputProduced { text, .. } = &mut said[3].body {
        *text = "\r 50%\r100%\u{1b}[32m done\u{1b}[0m\n".to_owned();
    }
    let items = read(&file(&said)).unwrap().items;
    let markdown = markdown(&header(), &kernel(), &items);
    assert!(markdown.contains("\n100% done\n"), "{markdown}");
    let notebook = notebook(&kernel(), &items).to_string();
    assert!(notebook.contains(r"\r 50%\r100%\u001b[32m done\u001b[0m\n"), "{notebook}");
}

#[test]
fn people_see_both_streams_in_order_and_that_code_was_cut_off() {
    let mut said = bodies();
    let job = JobId::from_uuid(uuid::Uuid::from_u128(1));
    let printed =
        |stream, text: &str| EventBody::OutputProduced { job: Some(job), stream, text: text.to_owned() };
    said[3].body = printed(OutputStream::Stderr, "first\n");
    said[4].body = printed(OutputStream::Stdout, "second\n");
    said[5].body =
        EventBody::EvalCancelled { job, ending: CancelEnding::Yielded, kept: None, grace_ms: None };
    let markdown = markdown(&header(), &kernel(), &read(&file(&said)).unwrap().items);
    assert!(markdown.contains("\nfirst\nsecond\n(cancelled)\n"), "{markdown}");
}

#[test]
fn a_notebook_has_displays_as_jupyter_has_them() {
    let notebook = notebook(&kernel(), &read(&file(&showing())).unwrap().items);
    let outputs: Vec<String> =
        notebook["cells"][0]["outputs"].as_array().unwrap().iter().map(ToString::to_string).collect();
    insta::assert_snapshot!(outputs.join("\n"), @r#"
    {"name":"stdout","output_type":"stream","text":["hello\n"]}
    {"data":{"text/plain":["100 %\n","done"]},"metadata":{},"output_type":"display_data"}
    {"data":{"image/png":"iVBORw==","text/plain":["[image/png, 4 bytes]"]},"metadata":{},"output_type":"display_data"}
    {"name":"stdout","output_type":"stream","text":["hello\n"]}
    {"data":{"application/vnd.dataresource+json":{"data":[{"x":1}],"schema":{"fields":[{"name":"x"}]}},"text/plain":["val it : int = 2"]},"execution_count":1,"metadata":{},"output_type":"execute_result"}
    "#);
}

fn kernel() -> Kernel {
    Kernel::of(&SessionKind::fsharp(), None)
}

fn header() -> Header {
    Header::new("lab".to_owned(), SessionKind::fsharp(), None, "/lab".to_owned(), None)
}

#[test]
fn people_read_markdown() {
    insta::assert_snapshot!(markdown(&header(), &kernel(), &items()), @"
    # lab

    ```fsharp
    1 + 1
    ```

    ```text
    hello
    val it : int = 2
    ```

    ---

    *reset: what is above was dropped*

    ```fsharp
    oops
    again
    ```

    ```text
    rejected
    ```

    ```fsharp
    f ()
    ```

    ````text
    ```
    E: no
    at f
    at g
    ````

    ```fsharp
    let x = 1
    ```

    ```text
    val it : int = 2
    ```
    ");
}

#[test]
fn a_script_has_what_ran_to_its_end_since_the_last_reset() {
    insta::assert_snapshot!(script(ScriptLanguage::FSharp, &kernel(), &items()), @"
    // %%
    // did not run to its end: rejected
    // oops
    // again

    // %%
    // did not run to its end: E
    // f ()

    // %%
    let x = 1
    ");
}

#[test]
fn a_script_and_a_polyglot_notebook_read_back_as_the_same_cells() {
    use crate::notebook::{Notebook, NotebookFormat};
    let code = |format, text: String| -> Vec<String> {
        let cells = Notebook::read(format, &text).unwrap().cells();
        cells.into_iter().filter(|cell| cell.is_code()).map(|cell| cell.source).collect()
    };
    let of_script = code(
        NotebookFormat::Script(ScriptLanguage::FSharp),
        script(ScriptLanguage::FSharp, &kernel(), &items()),
    );
    assert_eq!(of_script.len(), 3);
    assert_eq!(code(NotebookFormat::Dib, dib(&kernel(), &items())), of_script);
}

#[test]
#[allow(clippy::too_many_lines, reason = "most of it is a snapshot")]
fn a_notebook_has_every_cell_with_its_outputs() {
    let notebook = serde_json::to_string_pretty(&notebook(&kernel(), &items())).unwrap();
    insta::assert_snapshot!(notebook, @r#"
    {
      "cells": [
        {
          "cell_type": "code",
          "execution_count": 1,
          "id": "cell-1",
          "metadata": {},
          "outputs": [
            {
              "name": "stdout",
              "output_type": "stream",
              "text": [
                "hello\n"
              ]
            },
            {
              "data": {
                "text/plain": [
                  "val it : int = 2"
                ]
              },
              "execution_count": 1,
              "metadata": {},
              "output_type": "execute_result"
            }
          ],
          "source": [
            "1 + 1"
          ]
        },
        {
          "cell_type": "code",
          "execution_count": 2,
          "id": "cell-2",
          "metadata": {},
          "outputs": [
            {
              "ename": "rejected",
              "evalue": "",
              "output_type": "error",
              "traceback": []
            }
          ],
          "source": [
            "oops\n",
            "again"
          ]
        },
        {
          "cell_type": "code",
          "execution_count": 3,
          "id": "cell-3",
          "metadata": {},
          "outputs": [
            {
              "name": "stderr",
              "output_type": "stream",
              "text": [
                "```"
              ]
            },
            {
              "ename": "E",
              "evalue": "no",
              "output_type": "error",
              "traceback": [
                "E: no",
                "at f",
                "at g"
              ]
            }
          ],
          "source": [
            "f ()"
          ]
        },
        {
          "cell_type": "code",
          "execution_count": 4,
          "id": "cell-4",
          "metadata": {},
          "outputs": [
            {
              "data": {
                "text/plain": [
                  "val it : int = 2"
                ]
              },
              "execution_count": 4,
              "metadata": {},
              "output_type": "execute_result"
            }
          ],
          "source": [
            "let x = 1\n"
          ]
        }
      ],
      "metadata": {
        "kernelspec": {
          "display_name": ".NET (F#)",
          "language": "F#",
          "name": ".net-fsharp"
        },
        "language_info": {
          "name": "F#"
        }
      },
      "nbformat": 4,
      "nbformat_minor": 5
    }
    "#);
}
