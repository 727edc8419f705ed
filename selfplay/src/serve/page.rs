//! The files of the page.

/// A file, and its media type.
pub(super) struct PageFile {
    pub(super) kind: &'static str,
    pub(super) contents: &'static [u8],
}

macro_rules! page_files {
    ($($name:literal),* $(,)?) => {
        /// Each file by its path.
        const FILES: &[(&str, &[u8])] = &[$((concat!("/", $name), include_bytes!(concat!("page/", $name)))),*];
    };
}

page_files!(
    "analysis.js",
    "api.js",
    "app.js",
    "arrows.js",
    "board.js",
    "charts.js",
    "clock.js",
    "curve.js",
    "dom.js",
    "game.js",
    "games.js",
    "index.html",
    "notation.js",
    "pieces.js",
    "play.js",
    "replay.js",
    "run.js",
    "search.js",
    "style.css",
    "theme.js",
    "turnmaker.js",
    "uplot-LICENSE.txt",
    "uplot.css",
    "uplot.js",
);

/// The file at a path; `/` is the page itself.
pub(super) fn find(path: &str) -> Option<PageFile> {
    let path = if path == "/" { "/index.html" } else { path };
    let (name, contents) = FILES.iter().find(|(name, _)| *name == path)?;
    let kind = match name.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        _ => "text/plain; charset=utf-8",
    };
    Some(PageFile { kind, contents })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_file_of_the_folder_is_served() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve/page");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(
                find(&format!("/{name}")).is_some(),
                "{name} is missing in page.rs"
            );
        }
        assert!(find("/").is_some_and(|page| page.kind.starts_with("text/html")));
        for other in [
            "",
            "/..",
            "//index.html",
            "/page/index.html",
            "/../Cargo.toml",
        ] {
            assert!(find(other).is_none(), "{other}");
        }
    }
}
