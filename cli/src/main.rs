//! The `doppel` command.
#![forbid(unsafe_code)]

/// Threads create signatures of all sizes and other threads drop them. The allocator of the C library is slow
/// at that.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    doppel::run()
}
