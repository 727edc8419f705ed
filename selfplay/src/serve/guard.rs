//! Which requests are answered. A page of another site must neither read an answer nor start a search.
//!
//! - `Host` must be an address of this server, so that a foreign name that resolves to it (DNS rebinding) is refused.
//! - `Origin`, where a browser sends it, must be this server's. A request of the API that a browser calls `cross-site` is refused.
//! - At an address that other machines reach, each request needs a token; then any `Host` is allowed.

use super::error::ApiError;
use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, HeaderValue, ORIGIN,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rand::RngExt;
use std::net::SocketAddr;
use std::sync::Arc;

const POLICY: &str = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; \
                      frame-ancestors 'none'; base-uri 'none'; form-action 'self'";

/// Where a browser says that a request comes from.
const SITE: &str = "sec-fetch-site";

/// What a request must show.
#[derive(Debug)]
pub(super) struct Guard {
    address: SocketAddr,
    /// None where only this machine reaches the server.
    token: Option<String>,
}

impl Guard {
    pub(super) fn new(address: SocketAddr) -> Self {
        let token = || format!("{:032x}", rand::rng().random::<u128>());
        Self {
            address,
            token: (!address.ip().is_loopback()).then(token),
        }
    }

    pub(super) fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    fn check(&self, request: &Request) -> Result<(), ApiError> {
        let refused = |message: &str| Err(ApiError::new(StatusCode::FORBIDDEN, message));
        let headers = request.headers();
        let Ok(host) = only(headers, HOST.as_str()) else {
            return refused("the request must have one `Host` header, in ASCII");
        };
        let host = host.unwrap_or_default();
        if self.token.is_none() && !self.is_own(host) {
            return refused(
                "this server answers to its own address alone: see the line that it printed",
            );
        }
        let is_own = match only(headers, ORIGIN.as_str()) {
            // A proxy in front of this server may encrypt.
            Ok(origin) => origin.is_none_or(|origin| {
                let own = origin.strip_prefix("https://");
                own.or(origin.strip_prefix("http://")) == Some(host)
            }),
            Err(()) => false,
        };
        let is_cross_site = headers
            .get_all(SITE)
            .iter()
            .any(|site| site == "cross-site");
        if !is_own || (is_cross_site && is_api(request)) {
            return refused("pages of other sites may not use this server: open its own page");
        }
        match &self.token {
            Some(token) if !has_token(request, token) => Err(ApiError::new(
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong: use the address that the server printed",
            )),
            _ => Ok(()),
        }
    }

    /// Whether a `Host` is this server's own. A tunnel may have another port: a name that is always this machine's can't be another
    /// site's.
    fn is_own(&self, host: &str) -> bool {
        let own = ["localhost", "127.0.0.1", "[::1]"];
        let is_own = |name| {
            host.strip_prefix(name).is_some_and(|rest| {
                rest.is_empty()
                    || rest
                        .strip_prefix(':')
                        .is_some_and(|port| port.parse::<u16>().is_ok())
            })
        };
        host == self.address.to_string() || own.into_iter().any(is_own)
    }
}

/// The value of a header that may be there once.
///
/// # Errors
/// It is there twice, or it isn't ASCII.
fn only<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, ()> {
    let mut values = headers.get_all(name).iter();
    let value = values.next().map(|value| value.to_str().map_err(|_| ()));
    match values.next() {
        None => value.transpose(),
        Some(_) => Err(()),
    }
}

fn is_api(request: &Request) -> bool {
    request.uri().path().starts_with("/api/")
}

/// Compares in a time that doesn't depend on how much is right.
fn has_token(request: &Request, token: &str) -> bool {
    let header = only(request.headers(), AUTHORIZATION.as_str());
    let header = header.ok().flatten();
    let header = header.and_then(|value| value.strip_prefix("Bearer "));
    let query = request.uri().query().unwrap_or_default();
    let query = query
        .split('&')
        .find_map(|part| part.strip_prefix("token="));
    let is_right = |given: &str| {
        let differs = given
            .bytes()
            .zip(token.bytes())
            .fold(0, |all, (a, b)| all | (a ^ b));
        given.len() == token.len() && differs == 0
    };
    header.is_some_and(is_right) || query.is_some_and(is_right)
}

/// Refuses what the guard refuses, and gives each answer its headers. The page's files hold no secret: a browser loads modules and styles
/// without a token.
pub(super) async fn guarded(
    State(guard): State<Arc<Guard>>,
    request: Request,
    next: Next,
) -> Response {
    let is_api = is_api(&request);
    let mut response = match guard.check(&request) {
        Err(error) if is_api || guard.token.is_none() => error.into_response(),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    let mut set = |name, value| headers.insert(name, HeaderValue::from_static(value));
    set(CONTENT_SECURITY_POLICY, POLICY);
    set(X_CONTENT_TYPE_OPTIONS, "nosniff");
    set(X_FRAME_OPTIONS, "DENY");
    set(REFERRER_POLICY, "no-referrer");
    set(CACHE_CONTROL, if is_api { "no-store" } else { "no-cache" });
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_its_own_names_are_its_own() {
        let guard = Guard::new("127.0.0.1:8420".parse().unwrap());
        for own in [
            "127.0.0.1:8420",
            "localhost:8420",
            "[::1]:8420",
            "localhost:9000",
            "localhost",
        ] {
            assert!(guard.is_own(own), "{own}");
        }
        for other in [
            "",
            "evil.example:8420",
            "127.0.0.1:84200",
            "127.0.0.1.evil.example:8420",
            "localhost:8420:8420",
            "8420",
            "localhost.evil",
        ] {
            assert!(!guard.is_own(other), "{other}");
        }
    }

    #[test]
    fn requests_of_other_sites_are_refused() {
        let guard = Guard::new("127.0.0.1:8420".parse().unwrap());
        let check = |uri: &str, headers: &[(&str, &[u8])]| {
            let mut request = Request::builder().uri(uri);
            for (name, value) in headers {
                request = request.header(*name, *value);
            }
            let request = request.body(axum::body::Body::empty()).unwrap();
            guard.check(&request).is_ok()
        };
        let host: (&str, &[u8]) = ("host", b"localhost:8420");
        assert!(check("/api/about", &[host]));
        assert!(check(
            "/api/about",
            &[host, ("origin", b"http://localhost:8420")]
        ));
        assert!(check(
            "/api/about",
            &[host, ("origin", b"https://localhost:8420")]
        ));
        for other in ["https://localhost", "localhost:8420", "null"] {
            assert!(!check("/api/about", &[host, ("origin", other.as_bytes())]));
        }
        assert!(check(
            "/api/about",
            &[host, ("sec-fetch-site", b"same-origin")]
        ));
        // A link of another site may open the page.
        assert!(check("/", &[host, ("sec-fetch-site", b"cross-site")]));
        assert!(!check(
            "/api/about",
            &[host, ("sec-fetch-site", b"cross-site")]
        ));
        assert!(!check(
            "/api/about",
            &[host, ("origin", "http://localhost\u{e9}".as_bytes())]
        ));
        assert!(!check("/api/about", &[host, host]));
        assert!(!check("/api/about", &[host, ("host", b"evil.example")]));
        assert!(!check("/api/about", &[("host", b"\xff")]));
        let own: (&str, &[u8]) = ("origin", b"http://localhost:8420");
        assert!(!check(
            "/api/about",
            &[host, own, ("origin", b"http://evil.example")]
        ));
    }

    #[test]
    fn other_machines_need_the_token() {
        let guard = Guard::new("0.0.0.0:8420".parse().unwrap());
        let token = guard.token().unwrap().to_owned();
        assert_eq!(token.len(), 32);
        let check = |uri: &str, header: Option<String>| {
            let mut request = Request::builder().uri(uri).header(HOST, "machine:8420");
            if let Some(header) = header {
                request = request.header(AUTHORIZATION, header);
            }
            guard
                .check(&request.body(axum::body::Body::empty()).unwrap())
                .is_ok()
        };
        assert!(check("/api/about", Some(format!("Bearer {token}"))));
        assert!(check(&format!("/api/about?x=1&token={token}"), None));
        assert!(!check("/api/about", None));
        assert!(!check(
            "/api/about",
            Some(format!("Bearer {}", &token[1..]))
        ));
        assert!(!check("/api/about?token=", None));
    }
}
