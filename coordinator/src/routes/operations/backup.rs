//! `GET /v1/backup`: streams a backup while the service keeps running. The file contains all state that
//! cannot be rebuilt from other state.

use std::io::Write;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use doppel_protocol::{BackupError, BackupPiece, BackupStream};

use crate::app::App;
use crate::contract::refusals;
use crate::problem::Problem;
use crate::response::stream::stream;

const CONTENT_TYPE: &str = "application/octet-stream";

/// Back up the collection, for `doppel restore`.
///
/// The backup contains the state at one moment during the call. An answer that breaks off is not a backup:
/// the file then lacks its end mark, and `doppel restore` refuses it.
#[utoipa::path(
    get, path = "/v1/backup", operation_id = "get_backup", tag = "operations",
    responses(
        (status = 200, description = "The backup file", body = Vec<u8>, content_type = "application/octet-stream"),
        refusals::AsksWhetherWritable,
    ),
)]
pub(crate) async fn backup(State(app): State<App>) -> Result<Response, Problem> {
    let permit = app.enter_backup()?;
    app.blocking(|app| Ok(app.tier1().writable()?)).await?;
    let body = stream(permit, ("backup", None), move |out| {
        let backup = app.tier1().backup()?;
        write(backup, out)
    });
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response())
}

/// Writes the pieces of a backup as they arrive.
///
/// # Errors
/// [`BackupError::BrokenOff`] if the pieces stop before the end of the backup.
fn write(backup: BackupStream, out: &mut dyn Write) -> Result<(), BackupError> {
    for piece in backup {
        match piece? {
            BackupPiece::Bytes(bytes) => out.write_all(&bytes)?,
            BackupPiece::End(_) => return Ok(()),
        }
    }
    Err(BackupError::BrokenOff)
}
