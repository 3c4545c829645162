//! Texts of source files that are not saved, and the tests that reach them.

use serde::{Deserialize, Serialize};

operations! {
    /// Runs the tests that reach what an unsaved text of a source file has otherwise than the saved one, in a process beside the session's. The
    /// session knows nothing of the text. A newer text ends what is under way.
    "session/putBuffer" PutBuffer {
        /// Its id, the end of it, or its name.
        session: String,
        /// The path of the file, absolute.
        path: String,
        /// The version of the text: of two, the higher one is newer.
        version: u64,
        /// The whole text of the file.
        text: String,
    } -> mainstay_model::BufferRun;

    /// Throws an unsaved text away.
    "session/discardBuffer" DiscardBuffer {
        /// Its id, the end of it, or its name.
        session: String,
        /// The path of the file, absolute.
        path: String,
    } -> super::Nothing;

    /// Lists the unsaved texts of a session.
    "session/buffers" ListBuffers {
        /// Its id, the end of it, or its name.
        session: String,
    } -> Vec<mainstay_model::UnsavedBuffer>;
}
