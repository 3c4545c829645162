//! How an agent goes on: what may be chosen, as a form for a dialog. What is chosen goes to the HTTP API; each choice is the command for it.

use axum::extract::Path;
use axum::response::{Html, IntoResponse};
use mainstay_model::Error;
use mainstay_model::agent::{AgentState, Setting, ThinkingLevel};
use mainstay_runner::AgentQuestion;
use maud::{Markup, html};
use serde_json::Value;

use super::guard::{Refused, Viewer};

pub(super) async fn settings(viewer: Viewer, Path(id): Path<String>) -> Result<impl IntoResponse, Refused> {
    let session = viewer.session(&id).await?;
    let models = match viewer.client.question(session, AgentQuestion::Models).await {
        Ok(models) => Some(models),
        // It says so only while it is there.
        Err(Error::NotOffered { .. }) => None,
        Err(error) => return Err(error.into()),
    };
    let state = viewer.client.status(session).await?.session.agent.unwrap_or_default();
    Ok(Html(form(models.as_ref(), &state).into_string()))
}

fn form(models: Option<&Value>, state: &AgentState) -> Markup {
    let thinking = ThinkingLevel::ALL.map(|level| Choice {
        words: level.name().to_owned(),
        is_now: state.thinking == level,
        setting: Setting::Thinking { level },
    });
    let shortens =
        [(true, "when it gets long"), (false, "when it is told to")].map(|(enabled, words)| Choice {
            words: words.to_owned(),
            is_now: state.auto_compaction == enabled,
            setting: Setting::AutoCompaction { enabled },
        });
    html! {
        form #settings method="dialog" {
            h2 { "How it goes on" }
            @match models {
                Some(models) => (select("Model", &choices(models, state))),
                None => p.faint { "The agent is idle. Its models can be chosen once it was started." },
            }
            (select("Thinks", &thinking))
            (select("Shortens what it is shown", &shortens))
            div.buttons {
                button value="" { "Leave it" }
                button.primary value="yes" { "Go on so" }
            }
        }
    }
}

/// Something that may be chosen.
struct Choice {
    words: String,
    is_now: bool,
    setting: Setting,
}

fn select(label: &str, choices: &[Choice]) -> Markup {
    html! {
        label {
            (label)
            select {
                // What it goes on with now may be none of them.
                @if !choices.iter().any(|choice| choice.is_now) { option value="" selected { "as it is" } }
                @for Choice { words, is_now, setting } in choices {
                    option value=(serde_json::to_string(setting).unwrap_or_default()) selected[*is_now] { (words) }
                }
            }
        }
    }
}

/// The models that an agent says it may use.
fn choices(models: &Value, state: &AgentState) -> Vec<Choice> {
    let listed = models.as_array().or_else(|| models["models"].as_array());
    let choice = |model: &Value| {
        let (provider, id) = (model["provider"].as_str()?, model["id"].as_str()?);
        let called = model["name"].as_str().filter(|name| *name != id);
        let now = state.model.as_ref();
        Some(Choice {
            words: called
                .map_or_else(|| format!("{provider}/{id}"), |name| format!("{provider}/{id} · {name}")),
            is_now: now.is_some_and(|now| now.provider == provider && now.id == id),
            setting: Setting::Model { provider: provider.to_owned(), id: id.to_owned() },
        })
    };
    listed.into_iter().flatten().filter_map(choice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_may_be_chosen_is_the_command_for_it_and_what_is_now_is_chosen() {
        let model = serde_json::from_value(json!({ "provider": "p", "id": "a" })).unwrap();
        let state = AgentState { model: Some(model), thinking: ThinkingLevel::Low, ..AgentState::default() };
        let models = json!({ "models": [{ "provider": "p", "id": "a", "name": "<A>" }, { "provider": "p", "id": "b" }, { "id": "no" }] });
        let chosen: Vec<_> = choices(&models, &state).into_iter().map(|c| (c.words, c.is_now)).collect();
        assert_eq!(chosen, [("p/a · <A>".to_owned(), true), ("p/b".to_owned(), false)]);
        let form = form(Some(&models), &state).into_string();
        assert!(form.contains(r#"<option value="{&quot;setting&quot;:&quot;model&quot;,&quot;provider&quot;:&quot;p&quot;,&quot;id&quot;:&quot;a&quot;}" selected>p/a · &lt;A&gt;</option>"#), "{form}");
        assert!(form.contains(r#"selected>low</option>"#), "{form}");
        assert!(super::form(None, &state).into_string().contains("is idle"));
    }
}
