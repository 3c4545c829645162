//! What every store of sessions must do, run against each store there is.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

use std::sync::Arc;

use async_trait::async_trait;
use mainstay_log::{Log, SqliteLog, SqliteOptions};
use suite::Store;
use tempfile::TempDir;

mod suite;
mod support;

/// Makes a module of tests, one for each function of the suite, over the store that the expression makes.
macro_rules! conformance {
    ($name:ident, $store:expr, [$($subject:ident :: $case:ident,)*]) => {
        mod $name {
            #[allow(unused_imports, reason = "what the expression needs")]
            use super::*;

            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    suite::$subject::$case(&$store).await;
                }
            )*
        }
    };
}

macro_rules! conformance_of {
    ($name:ident, $store:expr) => {
        conformance!(
            $name,
            $store,
            [
                appends::what_was_answered_is_what_is_read_back,
                appends::a_refusal_that_no_session_has_is_stored_once,
                appends::every_kind_of_event_and_outcome_comes_back_as_it_was,
                appends::moments_are_cut_to_the_microsecond_everywhere,
                appends::another_seq_or_epoch_is_refused_and_leaves_nothing,
                appends::an_append_whose_answer_was_lost_is_done_once,
                appends::the_deletion_of_a_session_whose_answer_was_lost_is_done_once,
                appends::a_session_is_created_once,
                appends::a_session_that_is_not_there_takes_no_events,
                appends::an_outcome_is_found_by_its_key_of_the_same_principal_and_session,
                appends::a_key_of_a_creation_counts_for_creations_only,
                appends::an_outcome_is_never_overwritten_and_its_append_fails_whole,
                appends::each_principal_has_command_ids_of_its_own,
                appends::outcomes_may_come_without_events,
                appends::a_refused_append_leaves_those_beside_it,
                appends::appends_keep_the_order_of_their_calls,
                appends::what_nobody_waits_for_is_done_all_the_same,
                appends::only_the_newest_owner_appends,
                appends::positions_grow_over_all_sessions,
                artifacts::an_artifact_and_its_content_are_there_again,
                artifacts::an_artifact_that_is_there_stays_as_it_is,
                artifacts::content_goes_with_the_last_artifact_that_has_it,
                artifacts::artifacts_of_a_principal_are_bounded_together,
                resumable_connections::a_connection_is_there_again_as_it_was_stored_last,
                resumable_connections::connections_are_each_principals_own_and_come_newest_first,
                resumable_connections::connections_that_have_expired_are_removed,
                schedules::a_schedule_is_there_again_and_changes_only_on_its_newest_revision,
                schedules::a_principal_has_so_many_schedules_at_most_that_have_not_ended,
                schedules::schedules_come_by_the_moment_at_which_they_are_due,
                schedules::only_schedules_that_are_due_are_read_with_the_moment_of_the_next,
                notices::what_is_taken_is_stored_with_the_events,
                notices::a_runner_that_takes_anothers_place_begins_anew,
                notices::what_is_taken_needs_no_event_and_may_come_with_a_creation,
                notices::an_append_that_is_refused_takes_nothing,
                notices::an_append_that_is_sent_again_takes_nothing_back,
                events::events_come_after_a_cursor_and_up_to_a_limit,
                events::the_events_of_all_sessions_come_in_the_order_of_the_log,
                events::whoever_reads_all_sessions_on_and_on_misses_nothing,
                directory::sessions_are_those_that_match_the_most_recent_first,
                directory::a_limit_counts_the_sessions_of_the_owner_alone,
                directory::sessions_are_found_by_a_folder_that_theirs_lies_in,
                directory::sessions_are_found_by_their_asks_and_by_who_sees_them,
                directory::an_alias_that_is_released_is_another_sessions,
                directory::a_session_is_found_by_its_id_the_end_of_it_or_its_name,
                entries::a_cell_is_two_entries_once_it_has_ended,
                entries::a_display_is_an_entry_of_its_cell_and_its_text_is_found,
                entries::what_is_said_again_is_the_same_entry,
                entries::large_content_is_an_object_with_a_preview,
                entries::entries_are_those_that_the_events_come_to,
                entries::a_session_that_is_not_there_has_no_entries,
                search::entries_are_found_by_every_word_in_them,
                search::what_is_found_is_chosen_by_session_role_and_time,
                search::what_is_found_is_in_one_order_however_it_is_paged,
                deletions::a_deleted_session_is_not_found_and_takes_nothing,
                deletions::what_a_fork_has_of_a_deleted_session_stays_and_is_found_in_it,
                deletions::a_collection_leaves_the_last_event_and_takes_what_nobody_else_says,
                deletions::outcomes_are_emptied_but_for_the_creations_and_the_deletions,
                deletions::an_object_goes_with_the_last_that_says_it,
                history::lines_are_each_principals_own_and_come_newest_first,
                history::lines_are_chosen_by_folder_session_words_and_place,
                history::a_large_line_is_an_object_and_one_sent_again_is_kept_once,
                history::the_oldest_lines_go_and_their_numbers_are_not_given_again,
                objects::bytes_come_back_by_their_hash,
                objects::the_same_bytes_are_stored_once,
                objects::a_hash_of_nothing_stored_is_not_found,
            ]
        );
    };
}

conformance_of!(sqlite, Sqlite(tempfile::tempdir().unwrap()));

struct Sqlite(TempDir);

#[async_trait]
impl Store for Sqlite {
    async fn open(&self) -> Arc<dyn Log> {
        Arc::new(SqliteLog::open(self.0.path(), &SqliteOptions::default()).unwrap())
    }
}
