//! Data for scripts, as JSON.

use mainstay_model::Error;

/// Prints data for scripts, indented.
pub(crate) fn print_json(data: &impl serde::Serialize) -> Result<(), Error> {
    println!("{}", serde_json::to_string_pretty(data).map_err(|error| unwritable(&error))?);
    Ok(())
}

/// Prints data for scripts, on one line.
pub(crate) fn print_json_line(data: &impl serde::Serialize) -> Result<(), Error> {
    println!("{}", serde_json::to_string(data).map_err(|error| unwritable(&error))?);
    Ok(())
}

fn unwritable(error: &serde_json::Error) -> Error {
    Error::BadRequest { reason: error.to_string() }
}
