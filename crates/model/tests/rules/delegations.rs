//! Tasks that jobs give to others: when those are to stop, and what of the budget comes back.

use mainstay_model::grant::{Amounts, Budget, Decimal, Grants, OperationKind};
use mainstay_model::{
    AgentNotice, Command, Effect, Error, Input, Notice, Outcome, ParentEnding, RunnerNotice, Seq,
    SessionCommand, WorkEnding, YieldReason, command,
};
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use crate::decide::SessionHistory;
use crate::grants::{JOB, agent, begin, delegate, grants, hear, says, turn};
use crate::support::{amounts, client, command_id, job_id};

/// An agent whose job may cost eight dollars, and has given two tasks to others.
fn gave_two_tasks() -> SessionHistory {
    let mut story = agent();
    let held = grants(&[("fs.read", "/work/**"), ("agent.delegate", "*")]);
    begin(&mut story, turn(), held.costing(Budget::parse(["USD:8"]).unwrap())).unwrap();
    delegate(&mut story, 1, &[OperationKind::FS_READ]).unwrap();
    delegate(&mut story, 2, &[]).unwrap();
    story
}

fn stops(story: &SessionHistory) -> Vec<Option<ParentEnding>> {
    story.session.delegations.iter().map(|delegation| delegation.stops).collect()
}

fn left(story: &SessionHistory) -> Amounts {
    story.session.running().unwrap().grants.as_ref().unwrap().remaining()
}

/// A task has ended, and left so much.
fn ends(story: &mut SessionHistory, number: usize, unspent: Amounts) {
    let child = command_id(2_000 + number);
    let task = story.session.delegations.iter().find(|task| task.child == child);
    let given_at = task.map_or(Seq::ZERO, |task| task.given_at);
    let decision = story.decide(Input::Notice(Notice::DelegationEnded { given_at, unspent })).unwrap();
    story.carry(decision);
}

fn ended(story: &mut SessionHistory, ending: WorkEnding) {
    hear(story, RunnerNotice::Agent(AgentNotice::Ended { job: job_id(JOB), ending }));
}

#[test]
fn the_tasks_of_a_job_that_ends_by_itself_go_on_and_nothing_more_is_known_of_them() {
    for ending in
        [WorkEnding::Done { reason: YieldReason::EndTurn, value: json!(null) }, WorkEnding::failed("no")]
    {
        let mut story = gave_two_tasks();
        assert_eq!(stops(&story), [None, None]);
        ended(&mut story, ending);
        assert_eq!(stops(&story), []);
    }
}

#[test]
fn the_tasks_of_a_job_that_is_cancelled_denied_or_lost_are_to_stop_until_they_have_ended() {
    let mut story = gave_two_tasks();
    let cancel = SessionCommand::Cancel(command::Cancel::default());
    let command = Command::new(command_id(60), client(), cancel);
    let fingerprint = command.fingerprint(story.session.id);
    let fresh = Uuid::from_u128(9);
    let decision = story.decide(Input::Command { command, fingerprint, deadline: None, fresh }).unwrap();
    story.carry(decision);
    assert_eq!(stops(&story), [Some(ParentEnding::Cancelled); 2]);
    // What it says of its own end changes nothing.
    ended(&mut story, WorkEnding::Interrupted);
    assert_eq!(stops(&story), [Some(ParentEnding::Cancelled); 2]);
    ends(&mut story, 1, Amounts::new());
    assert_eq!(stops(&story), [Some(ParentEnding::Cancelled)]);

    let mut story = gave_two_tasks();
    says(&mut story, 3.0);
    assert_eq!(stops(&story), [Some(ParentEnding::Denied); 2]);

    let mut story = gave_two_tasks();
    let decision = story.decide(Input::Notice(Notice::DaemonLost)).unwrap();
    story.carry(decision);
    assert_eq!(stops(&story), [Some(ParentEnding::Lost); 2]);
}

#[test]
fn a_job_whose_parent_has_ended_is_answered_with_that_and_told_to_stop() {
    let mut story = gave_two_tasks();
    let error = Error::ParentEnded { parent: command_id(9), ending: ParentEnding::Lost };
    let tell = |command| Notice::ParentEnded {
        principal: client().principal(),
        command: command_id(command),
        error: error.clone(),
    };
    let decision = story.decide(Input::Notice(tell(51))).unwrap();
    assert_eq!(decision.events, [], "another command runs");
    let decision = story.decide(Input::Notice(tell(50))).unwrap();
    assert_eq!(decision.effects, [Effect::Interrupt { job: job_id(JOB) }]);
    story.carry(decision);
    assert_eq!(story.answers.get(command_id(50).as_str()), Some(&Outcome::Failed { error: error.clone() }));
    assert_eq!(stops(&story), [Some(ParentEnding::Lost); 2], "it reaches those that it gave tasks to");
    let again = story.decide(Input::Notice(tell(50))).unwrap();
    assert_eq!(again.events, []);
}

#[test]
fn what_is_not_spent_comes_back_once_and_never_more_than_was_given() {
    let mut story = gave_two_tasks();
    assert_eq!(left(&story), amounts("USD:2"));
    ends(&mut story, 1, amounts("USD:3"));
    assert_eq!(left(&story), amounts("USD:5"));
    ends(&mut story, 1, amounts("USD:3"));
    assert_eq!(left(&story), amounts("USD:5"));
    ends(&mut story, 2, amounts("USD:30"));
    assert_eq!(left(&story), amounts("USD:7"));
    ends(&mut story, 3, amounts("USD:1"));
    assert_eq!(left(&story), amounts("USD:7"));
}

#[test]
fn only_so_many_tasks_may_not_have_ended() {
    let mut story = gave_two_tasks();
    let open = mainstay_model::session::OPEN_DELEGATIONS;
    for number in 3..=open {
        delegate(&mut story, number, &[]).unwrap();
    }
    let refused = delegate(&mut story, open + 1, &[]).unwrap_err();
    assert_eq!(refused, Error::TooManyCommands { limit: open });
    ends(&mut story, 1, Amounts::new());
    delegate(&mut story, open + 1, &[]).unwrap();
}

fn cents(cents: u64) -> Decimal {
    Decimal::reported(&format!("{}e-2", cents)).unwrap()
}

/// A job that carries a task out: what it may spend, and whether it has ended.
struct Child {
    number: usize,
    grants: Grants,
    has_ended: bool,
}

proptest! {
    /// Whatever is delegated, spent, returned and delegated again, in whatever order and told however often, all together never spend more than
    /// the first budget.
    #[test]
    fn all_that_is_spent_is_never_more_than_the_first_budget(
        steps in prop::collection::vec((0..4_u8, 0..8_usize, 0..300_u64), 0..40),
    ) {
        let mut story = agent();
        let held = grants(&[("fs.read", "/work/**"), ("agent.delegate", "*")]);
        begin(&mut story, turn(), held.costing(Budget::parse(["USD:5.01"]).unwrap())).unwrap();
        let usd = "USD".parse().unwrap();
        let (mut all, mut children) = (Decimal::ZERO, Vec::<Child>::new());
        for (step, which, amount) in steps {
            match (step, children.get_mut(which)) {
                (0, _) => {
                    let number = children.len();
                    let given = delegate(&mut story, number, &[]);
                    children.extend(given.ok().map(|grants| Child { number, grants, has_ended: false }));
                }
                (1, Some(child)) if !child.has_ended => {
                    let cost = cents(amount).min(child.grants.remaining()[&usd]);
                    child.grants.spend(&usd, cost);
                    all = all.plus(cost);
                }
                (2, Some(child)) => {
                    child.has_ended = true;
                    let (number, unspent) = (child.number, child.grants.remaining());
                    ends(&mut story, number, unspent);
                }
                _ => {
                    // The last of it would have the job denied, which gives nothing back.
                    let most = left(&story)[&usd].minus(cents(1));
                    let cost = cents(amount).min(most);
                    all = all.plus(cost);
                    says(&mut story, cost.to_string().parse().unwrap());
                }
            }
        }
        prop_assert!(all <= "5.01".parse().unwrap());
        for child in children.into_iter().filter(|child| !child.has_ended) {
            ends(&mut story, child.number, child.grants.remaining());
        }
        // Dollars of a message are whole billionths, rounded up.
        prop_assert!(left(&story)[&usd].plus(all) <= "5.01".parse().unwrap());
    }
}
