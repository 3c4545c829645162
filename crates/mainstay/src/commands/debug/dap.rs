//! What passes between an editor and its debugger, in the messages of the Debug Adapter Protocol: whatever the editor begins becomes an
//! attachment to the worker, and whatever it ends leaves the worker alive.

use std::collections::HashMap;
use std::io::{Error, ErrorKind};

use bytes::{Buf, BufMut, BytesMut};
use serde_json::{Value, json};
use tokio_util::codec::{Decoder, Encoder};

/// How long the header of a message may be.
const HEADER_BYTES: usize = 4096;
/// What a runtime answers whose loaded code was updated: `CORDBG_E_ASSEMBLY_UPDATES_APPLIED`, in a debugger's words about a failure.
const CODE_UPDATED: &str = "0x80131c69";
/// How long a message may be: whoever sends more speaks another protocol.
const MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Messages as they are framed: `Content-Length`, an empty line, and so many bytes of JSON.
#[derive(Debug, Default)]
pub(super) struct Frames;

impl Decoder for Frames {
    type Item = Value;
    type Error = Error;

    fn decode(&mut self, bytes: &mut BytesMut) -> Result<Option<Value>, Error> {
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
            return if bytes.len() > HEADER_BYTES { Err(wrong("its header does not end")) } else { Ok(None) };
        };
        let header = std::str::from_utf8(&bytes[..end]).map_err(wrong)?;
        let length = header
            .split("\r\n")
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| name.trim().eq_ignore_ascii_case("content-length"))
            .and_then(|(_, length)| length.trim().parse::<usize>().ok())
            .filter(|length| *length <= MESSAGE_BYTES)
            .ok_or_else(|| wrong("it has no fitting `Content-Length`"))?;
        let begin = end + 4;
        if bytes.len() < begin + length {
            return Ok(None);
        }
        bytes.advance(begin);
        serde_json::from_slice(&bytes.split_to(length)).map(Some).map_err(wrong)
    }
}

impl Encoder<Value> for Frames {
    type Error = Error;

    fn encode(&mut self, message: Value, bytes: &mut BytesMut) -> Result<(), Error> {
        let text = message.to_string();
        bytes.put_slice(format!("Content-Length: {}\r\n\r\n{text}", text.len()).as_bytes());
        Ok(())
    }
}

fn wrong(why: impl ToString) -> Error {
    Error::new(
        ErrorKind::InvalidData,
        format!("no message of the Debug Adapter Protocol: {}", why.to_string()),
    )
}

/// Whether the debugger says with a message that it has let go of the worker.
pub(super) fn has_parted(message: &Value) -> bool {
    message["type"] == "response" && message["command"] == "disconnect" && message["success"] == true
}

/// One conversation between an editor and a debugger about a worker.
#[derive(Debug)]
pub(super) struct Conversation {
    pid: u32,
    /// What is said where the runtime admits no debugger since its code was updated.
    refusal: String,
    /// What the editor called the requests that were changed, by their numbers.
    asked: HashMap<u64, String>,
}

impl Conversation {
    /// One about the process with this number; the refusal is for the editor's user.
    pub(super) fn about(pid: u32, refusal: String) -> Self {
        Self { pid, refusal, asked: HashMap::new() }
    }

    /// What the debugger gets of a message of the editor's.
    pub(super) fn for_debugger(&mut self, mut message: Value) -> Value {
        let command = match (message["type"].as_str(), message["command"].as_str()) {
            (Some("request"), Some(command)) => command.to_owned(),
            _ => return message,
        };
        match command.as_str() {
            "launch" | "attach" => {
                self.becomes(&mut message, &command, "attach");
                let kept = message["arguments"].take();
                let mut arguments = if kept.is_object() { kept } else { json!({}) };
                arguments["processId"] = json!(self.pid);
                message["arguments"] = arguments;
            }
            // A debugger would end the worker with itself.
            "terminate" | "disconnect" => {
                self.becomes(&mut message, &command, "disconnect");
                message["arguments"] = json!({ "terminateDebuggee": false });
            }
            _ => {}
        }
        message
    }

    /// What the editor gets of a message of the debugger's.
    pub(super) fn for_editor(&mut self, mut message: Value) -> Value {
        if message["type"] != "response" {
            return message;
        }
        if let Some(command) = message["request_seq"].as_u64().and_then(|request| self.asked.remove(&request))
        {
            message["command"] = command.into();
        }
        if message["success"] == false
            && message["message"].as_str().is_some_and(|why| why.to_lowercase().contains(CODE_UPDATED))
        {
            message["message"] = self.refusal.clone().into();
            message["body"] = json!({ "error": { "id": 1, "format": self.refusal, "showUser": true } });
        }
        if message["command"] == "initialize" && message["body"].is_object() {
            for ability in ["supportsTerminateRequest", "supportTerminateDebuggee"] {
                message["body"][ability] = false.into();
            }
        }
        message
    }

    /// Gives a request another name, which its response does not have.
    fn becomes(&mut self, message: &mut Value, command: &str, name: &str) {
        if command != name
            && let Some(seq) = message["seq"].as_u64()
        {
            self.asked.insert(seq, command.to_owned());
        }
        message["command"] = name.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(seq: u64, command: &str, arguments: Value) -> Value {
        json!({"seq": seq, "type": "request", "command": command, "arguments": arguments})
    }

    #[test]
    fn whatever_begins_attaches_to_the_worker() {
        let mut conversation = Conversation::about(7, String::new());
        let launch = request(2, "launch", json!({"program": "/bin/x", "justMyCode": false}));
        let attach = request(3, "attach", json!({"processId": "1"}));
        let attached = json!({"program": "/bin/x", "justMyCode": false, "processId": 7});
        assert_eq!(conversation.for_debugger(launch), request(2, "attach", attached));
        assert_eq!(conversation.for_debugger(attach), request(3, "attach", json!({"processId": 7})));
        let without = json!({"seq": 4, "type": "request", "command": "attach"});
        assert_eq!(conversation.for_debugger(without), request(4, "attach", json!({"processId": 7})));
    }

    #[test]
    fn a_response_has_the_name_that_the_editor_gave() {
        let mut conversation = Conversation::about(7, String::new());
        conversation.for_debugger(request(2, "launch", json!({})));
        conversation.for_debugger(request(3, "terminate", json!({})));
        let of = |request: u64, command: &str| json!({"type": "response", "request_seq": request, "command": command});
        assert_eq!(conversation.for_editor(of(2, "attach")), of(2, "launch"));
        assert_eq!(conversation.for_editor(of(3, "disconnect")), of(3, "terminate"));
        assert_eq!(conversation.for_editor(of(2, "threads")), of(2, "threads"));
    }

    #[test]
    fn whatever_ends_leaves_the_worker_alive() {
        let mut conversation = Conversation::about(7, String::new());
        let asked = json!({"terminateDebuggee": true, "restart": false});
        let stays = || json!({"terminateDebuggee": false});
        for command in ["disconnect", "terminate"] {
            let passed = conversation.for_debugger(request(5, command, asked.clone()));
            assert_eq!(passed, request(5, "disconnect", stays()));
        }
        let able = json!({"type": "response", "request_seq": 1, "command": "initialize",
            "body": {"supportsTerminateRequest": true, "supportsConfigurationDoneRequest": true}});
        assert_eq!(
            conversation.for_editor(able)["body"],
            json!({"supportsTerminateRequest": false, "supportTerminateDebuggee": false, "supportsConfigurationDoneRequest": true})
        );
    }

    #[test]
    fn a_refusal_of_the_runtime_is_said_in_words_that_help() {
        let mut conversation = Conversation::about(7, "rebuild it".to_owned());
        let failed = |message: &str| json!({"type": "response", "request_seq": 4, "command": "configurationDone", "success": false, "message": message});
        let refused = conversation.for_editor(failed("Failed command 'configurationDone' : 0x80131C69"));
        assert_eq!((&refused["message"], &refused["success"]), (&json!("rebuild it"), &json!(false)));
        assert_eq!(refused["body"]["error"]["format"], "rebuild it");
        let other = failed("Failed command 'configurationDone' : 0x80131c30");
        assert_eq!(conversation.for_editor(other.clone()), other);
    }

    #[test]
    fn only_an_answered_disconnect_is_a_parting() {
        let of = |kind: &str, command: &str, success: bool| json!({"type": kind, "command": command, "success": success});
        assert!(has_parted(&of("response", "disconnect", true)));
        for other in [
            of("response", "disconnect", false),
            of("request", "disconnect", true),
            of("response", "next", true),
        ] {
            assert!(!has_parted(&other), "{other}");
        }
    }

    #[test]
    fn everything_else_passes_as_it_is() {
        let mut conversation = Conversation::about(7, String::new());
        let others = [
            request(1, "setBreakpoints", json!({"lines": [1]})),
            json!({"type": "event", "event": "stopped"}),
            json!(1),
        ];
        for other in others {
            assert_eq!(conversation.for_debugger(other.clone()), other);
            assert_eq!(conversation.for_editor(other.clone()), other);
        }
    }

    #[test]
    fn messages_are_read_however_they_are_cut() {
        let messages = [json!({"text": "ä"}), json!({})];
        let mut written = BytesMut::new();
        messages.iter().for_each(|message| Frames.encode(message.clone(), &mut written).unwrap());
        let mut read = Vec::new();
        let mut bytes = BytesMut::new();
        for byte in &written {
            bytes.put_u8(*byte);
            read.extend(Frames.decode(&mut bytes).unwrap());
        }
        assert_eq!(read, messages);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for text in [
            "Length: 2\r\n\r\n{}",
            "Content-Length: 99999999999\r\n\r\n",
            "Content-Length: 1\r\n\r\n{",
            &"x".repeat(5000),
        ] {
            assert!(Frames.decode(&mut BytesMut::from(text)).is_err(), "{text}");
        }
    }
}
