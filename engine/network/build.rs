//! Compiles what the bindings to libtorch lack: `src/stream.cpp`.

fn main() {
    println!("cargo::rerun-if-changed=src/stream.cpp");
    println!("cargo::rerun-if-env-changed=LIBTORCH");
    let Some(libtorch) = std::env::var_os("LIBTORCH").map(std::path::PathBuf::from) else {
        println!("cargo::error=LIBTORCH is not set: run scripts/setup, and build in the checkout");
        return;
    };
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .warnings(false)
        .include(libtorch.join("include"))
        .file("src/stream.cpp")
        .compile("tusker_stream");
    println!("cargo::rustc-link-lib=c10");
}
