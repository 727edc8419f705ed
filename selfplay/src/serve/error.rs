//! Errors as answers: a status and `{"error": "…"}`.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request has no answer.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    message: String,
}

pub(super) type ApiResult<T> = Result<T, ApiError>;

impl ApiError {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self {
            status,
            message: message.into(),
        }
    }

    /// Whether what the request names is not there.
    #[cfg(test)]
    pub(super) fn is_missing(&self) -> bool {
        self.status == StatusCode::NOT_FOUND
    }

    /// What went wrong, in words.
    pub(super) fn message(&self) -> String {
        self.message.clone()
    }

    /// The request is wrong.
    pub(super) fn wrong(message: impl ToString) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message.to_string())
    }

    /// What the request names is not there.
    pub(super) fn missing(message: impl ToString) -> Self {
        Self::new(StatusCode::NOT_FOUND, message.to_string())
    }

    /// The request doesn't fit the state of what it names.
    pub(super) fn conflict(message: impl ToString) -> Self {
        Self::new(StatusCode::CONFLICT, message.to_string())
    }

    /// Too much is requested at once.
    pub(super) fn busy(message: impl ToString) -> Self {
        Self::new(StatusCode::TOO_MANY_REQUESTS, message.to_string())
    }

    /// A fault on this side.
    pub(super) fn failed(message: impl ToString) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, message.to_string())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.status, Json(json!({ "error": self.message }))).into_response()
    }
}

impl From<anyhow::Error> for ApiError {
    fn from(error: anyhow::Error) -> Self {
        Self::failed(format!("{error:#}"))
    }
}
