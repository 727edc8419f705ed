//! Compiles what the bindings to libtorch lack: `src/network/stream.cpp`.

use std::path::PathBuf;

fn main() {
    println!("cargo::rerun-if-changed=src/network/stream.cpp");
    println!("cargo::rerun-if-env-changed=LIBTORCH");
    if std::env::var_os("CARGO_FEATURE_TORCH").is_none() {
        return;
    }
    let Some(libtorch) = std::env::var_os("LIBTORCH").map(PathBuf::from) else {
        println!(
            "cargo::error=LIBTORCH is not set: run scripts/setup in the checkout, and build there"
        );
        return;
    };
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .warnings(false)
        .include(libtorch.join("include"))
        .file("src/network/stream.cpp")
        .compile("tusker_stream");
    println!("cargo::rustc-link-lib=c10");
}
