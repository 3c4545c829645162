//! What code puts out, and what its kernel says beside that, as a front end is told it.

use mainstay_kernel::jupyter::wire::Message;
use mainstay_model::{CommMessage, Display, Event, EventBody, JobId, OutputStream};
use serde_json::json;

use super::content::shown;
use super::shell::Shell;

impl Shell {
    /// Tells what an event says of what a request of ours led to.
    pub(super) async fn tell(&mut self, request: &Message, event: &Event) {
        match &event.body {
            EventBody::OutputProduced { stream, text, .. } => self.print(request, *stream, text).await,
            EventBody::OutputDisplayed { display, .. } if display.is_put_out() => {
                self.show(request, display).await
            }
            EventBody::OutputCleared { is_replaced, .. } => {
                self.voice.publish(Some(request), "clear_output", &json!({ "wait": is_replaced })).await;
            }
            EventBody::CommPublished { job, message } => {
                let message = capturing(message, *job, request);
                self.voice.pass_on(Some(request), &message).await;
            }
            _ => {}
        }
    }

    pub(super) async fn print(&self, request: &Message, stream: OutputStream, text: &str) {
        let content = json!({ "name": stream, "text": text });
        self.voice.publish(Some(request), "stream", &content).await;
    }

    async fn show(&mut self, request: &Message, display: &Display) {
        let Display { id, data, .. } = display;
        let is_known = id.as_ref().is_some_and(|id| !self.displayed.insert(id.clone()));
        // F# shows again in the place of what it called so; front ends of others say which they mean.
        let mut content = shown(data);
        if display.is_value {
            content["execution_count"] = self.count.into();
            return self.voice.publish(Some(request), "execute_result", &content).await;
        }
        let kind = match display.is_update || (is_known && self.seat.kind().is_fsharp()) {
            true => "update_display_data",
            false => "display_data",
        };
        let transient = id.as_ref().map_or_else(|| json!({}), |id| json!({ "display_id": id }));
        content["transient"] = transient;
        self.voice.publish(Some(request), kind, &content).await;
    }
}

/// A widget that takes in what a request puts out names the request: to its kernel that is the job, to its front end the message that it sent.
fn capturing(message: &CommMessage, job: Option<JobId>, request: &Message) -> CommMessage {
    let mut message = message.clone();
    if let (Some(named), Some(job)) = (message.data.pointer_mut("/state/msg_id"), job)
        && *named == job.to_string()
    {
        *named = json!(request.header.msg_id);
    }
    message
}

#[cfg(test)]
mod tests {
    use mainstay_kernel::jupyter::wire::Header;
    use mainstay_model::{CommId, CommStep};

    use super::*;

    #[test]
    fn a_widget_that_takes_in_output_names_what_the_front_end_has_sent() {
        let job: JobId = "019a0000-0000-7000-8000-000000000001".parse().unwrap();
        let request = Message::new(Header::new("execute_request", "s"), &json!({}));
        let named = |msg_id: &str, job: Option<JobId>| {
            let message = CommMessage {
                comm: CommId::new("1").unwrap(),
                step: CommStep::Say,
                data: json!({ "method": "update", "state": { "msg_id": msg_id } }),
                metadata: json!(null),
                buffers: Vec::new(),
            };
            capturing(&message, job, &request).data["state"]["msg_id"].clone()
        };
        assert_eq!(named(&job.to_string(), Some(job)), json!(request.header.msg_id));
        assert_eq!(named("", Some(job)), json!(""));
        assert_eq!(named(&job.to_string(), None), json!(job.to_string()));
    }
}
