//! argv to exit code, nothing else.

fn main() -> std::process::ExitCode {
    stormwake::cli::main()
}
