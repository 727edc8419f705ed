//! What requests carry: a body, a query, a number in the path. What is wrong with them is told in plain words.

use super::error::{ApiError, ApiResult};
use super::router::MOST_BYTES;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::error::Category;

/// The most characters of a wrong value in an error.
const MOST_SHOWN: usize = 60;

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
            let is_name = |text: &str| text.chars().all(|c| c.is_ascii_lowercase() || c == '_');
            let (path, message) = match text.split_once(": ") {
                Some((path, message)) if is_name(path) => (path, message),
                _ => ("", text),
            };
            ApiError::wrong(format!("the query: {}", in_words(path, message)))
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
            format!("the body is larger than {} KiB, the most", MOST_BYTES >> 10)
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
        Category::Data => format!("the body: {}", in_words(path, text)),
        Category::Syntax | Category::Eof | Category::Io => format!(
            "the body is no JSON: line {}, column {}: {text}",
            error.line(),
            error.column()
        ),
    })
}

/// What serde says of the value at a path, in plain words.
fn in_words(path: &str, message: &str) -> String {
    let path = path.trim_matches(['.', '?']);
    let quoted = |text: &str| {
        let mut parts = text.splitn(3, '`');
        parts.nth(1).map(str::to_owned).unwrap_or_default()
    };
    let within = |field: &str| match path {
        "" => format!("`{field}`"),
        path if path == field || path.ends_with(&format!(".{field}")) => format!("`{path}`"),
        path => format!("`{path}.{field}`"),
    };
    if message.starts_with("missing field ") {
        return format!("{} is missing", within(&quoted(message)));
    }
    if message.starts_with("duplicate field ") {
        return format!("{} is there twice", within(&quoted(message)));
    }
    let here = match path {
        "" => "it".to_owned(),
        path => format!("`{path}`"),
    };
    match message.rsplit_once(", expected ") {
        Some((unknown, expected)) if unknown.starts_with("unknown field ") => {
            let field = within(&shortened(&quoted(unknown)));
            format!("{field} is unknown: use {expected}")
        }
        Some((found, expected)) if found.starts_with("unknown variant ") => {
            let found = shortened(&quoted(found));
            format!("{here} must be {expected}, and is `{found}`")
        }
        Some((found, expected)) if found.starts_with("invalid ") => {
            let found = found.split_once(": ").map_or(found, |(_, found)| found);
            let found = shortened(&found_in_words(found));
            format!(
                "{here} must be {}, and is {found}",
                expected_in_words(expected)
            )
        }
        _ => {
            let message = message
                .replace(
                    ": invalid digit found in string",
                    " is no whole number from 0 on",
                )
                .replace(": invalid float literal", " is no number")
                .replace(": cannot parse integer from empty string", " is no number")
                .replace(": number too large to fit in target type", " is too large");
            format!("{here}: {}", shortened(&message))
        }
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn expected_in_words(expected: &str) -> &str {
    match expected {
        "a string" => "a text",
        "a sequence" => "a list",
        "a boolean" => "true or false",
        "f32" | "f64" => "a number",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0 on",
        _ if expected.starts_with("struct ") || expected == "a map" => "an object",
        _ => expected,
    }
}

fn found_in_words(found: &str) -> String {
    let kinds = ["integer ", "floating point ", "boolean "];
    match found {
        "map" => "an object".into(),
        "sequence" => "a list".into(),
        _ => match kinds.iter().find_map(|kind| found.strip_prefix(kind)) {
            Some(value) => value.trim_matches('`').into(),
            None => found
                .strip_prefix("string ")
                .map_or_else(|| found.into(), |text| format!("the text {text}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::rules::StateRequest;
    use super::super::searches::SearchRequest;
    use super::*;

    fn error_of<T: DeserializeOwned>(body: &str) -> String {
        from_json::<T>(body.as_bytes()).err().unwrap().message()
    }

    #[test]
    fn a_wrong_body_is_told_in_plain_words() {
        for (body, words) in [
            (
                r#"{"game": {"turns": ["Ra1n", {}]}}"#,
                "the body: `game.turns[1]` must be a text, and is an object",
            ),
            (
                r#"{"game": 7}"#,
                "the body: `game` must be an object, and is 7",
            ),
            (r#"{"steps": ""}"#, "the body: `game` is missing"),
            (
                r#"{"game": {}, "game": {}}"#,
                "the body: `game` is there twice",
            ),
            (
                r#"{"game": {"start": ["a"]}}"#,
                "the body: `game.start` must be a text, and is a list",
            ),
            (
                r#"{"game": {"trns": []}}"#,
                "the body: `game.trns` is unknown: use `start` or `turns`",
            ),
            ("[1", "the body: `[0]` must be an object, and is 1"),
            ("7", "the body: it must be an object, and is 7"),
            (
                r#"{"game": {}} x"#,
                "the body is no JSON: line 1, column 14: trailing characters",
            ),
            (
                "",
                "the body is no JSON: line 1, column 0: EOF while parsing a value",
            ),
        ] {
            assert_eq!(error_of::<StateRequest>(body), words, "{body}");
        }
        for (given, words) in [
            (
                r#""evaluations": -1"#,
                "`evaluations` must be a whole number from 0 to 4294967295, and is -1",
            ),
            (
                r#""evaluations": 1.5"#,
                "`evaluations` must be a whole number from 0 to 4294967295, and is 1.5",
            ),
            (
                r#""seconds": "two""#,
                "`seconds` must be a number, and is the text \"two\"",
            ),
            (
                r#""lines": true"#,
                "`lines` must be a whole number from 0 on, and is true",
            ),
        ] {
            let body = format!(r#"{{"game": {{}}, "player": "material", {given}}}"#);
            assert_eq!(
                error_of::<SearchRequest>(&body),
                format!("the body: {words}")
            );
        }
        let long = error_of::<StateRequest>(&format!(r#"{{"game": "{}"}}"#, "é".repeat(1_000)));
        assert!(long.chars().count() < 130, "{long}");
    }
}
