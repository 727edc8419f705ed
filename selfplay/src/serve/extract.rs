//! What requests carry: a body, a query, a number in the path. An error names the field.

use super::error::{ApiError, ApiResult};
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// The most bytes of a body.
pub(super) const MAX_BYTES: usize = 256 << 10;

/// A body of JSON.
pub(super) struct JsonBody<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> ApiResult<Self> {
        let kind = request.headers().get(CONTENT_TYPE);
        // Other sites' pages can't send this type without the server's consent.
        if !kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json")) {
            return Err(ApiError::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                "the body must be JSON: send the header `Content-Type: application/json`",
            ));
        }
        let bytes = Bytes::from_request(request, state).await;
        from_json(&bytes.map_err(unreadable)?).map(Self)
    }
}

/// A query, as `?side=gold`.
pub(super) struct QueryOf<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryOf<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> ApiResult<Self> {
        let Query(query) = Query::try_from_uri(&parts.uri).map_err(|rejection| {
            let text = rejection.body_text();
            let text = text
                .strip_prefix("Failed to deserialize query string: ")
                .unwrap_or(&text);
            ApiError::wrong(format!("the query: {text}"))
        })?;
        Ok(Self(query))
    }
}

/// The `{id}` of a path.
pub(super) struct Id(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for Id {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> ApiResult<Self> {
        let id = Path::from_request_parts(parts, state).await;
        id.map(|Path(id)| Self(id)).map_err(|_| {
            ApiError::wrong("the path holds no text in UTF-8: use a name that this server gave")
        })
    }
}

fn unreadable(rejection: BytesRejection) -> ApiError {
    let message = match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => {
            format!("the body is larger than {} KiB, the most", MAX_BYTES >> 10)
        }
        _ => format!("the body can't be read: {}", rejection.body_text()),
    };
    ApiError::new(rejection.status(), message)
}

fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> ApiResult<T> {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader);
    let value = value.map_err(|error| {
        let path = error.path().to_string();
        wrong_json(&path, &error.into_inner())
    })?;
    reader.end().map_err(|error| wrong_json("", &error))?;
    Ok(value)
}

fn wrong_json(path: &str, error: &serde_json::Error) -> ApiError {
    let text = error.to_string();
    let text = text
        .rsplit_once(" at line ")
        .map_or(&*text, |(text, _)| text);
    ApiError::wrong(match error.classify() {
        Category::Data => format!("the body: {}", at(path, text)),
        Category::Syntax | Category::Eof | Category::Io => format!(
            "the body is no JSON: line {}, column {}: {text}",
            error.line(),
            error.column()
        ),
    })
}

/// What is wrong with the value at a path, such as `game.turns[1]`.
fn at(path: &str, message: &str) -> String {
    match path.trim_matches(['.', '?']) {
        "" => message.to_owned(),
        path => format!("`{path}`: {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::StateRequest;
    use super::*;

    #[test]
    fn a_wrong_body_is_an_error_that_names_its_field() {
        for (body, words) in [
            (
                r#"{"game": {"turns": ["Ra1n", {}]}}"#,
                "the body: `game.turns[1]`: invalid type: map, expected a string",
            ),
            (r#"{"steps": ""}"#, "the body: missing field `game`"),
            (
                r#"{"game": {"trns": []}}"#,
                "the body: `game.trns`: unknown field `trns`, expected `start` or `turns`",
            ),
            (
                r#"{"game": {}} x"#,
                "the body is no JSON: line 1, column 14: trailing characters",
            ),
            (
                "",
                "the body is no JSON: line 1, column 0: EOF while parsing a value",
            ),
        ] {
            let error = from_json::<StateRequest>(body.as_bytes()).err().unwrap();
            assert_eq!(error.message(), words, "{body}");
        }
    }
}
