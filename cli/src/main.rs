//! The `doppel` command.
#![forbid(unsafe_code)]

/// Signatures of all sizes are made in some threads and dropped in others, which the C library's
/// allocator does slowly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    doppel::run()
}
