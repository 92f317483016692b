//! Processor time of this process: what work costs, whatever else runs on the machine meanwhile.

use std::fs;
use std::io;
use std::path::Path;

/// Seconds that the present threads have spent on processors, as Linux counts them. A thread that has ended
/// is not among them.
///
/// # Errors
/// When the system does not say.
pub(crate) fn seconds() -> io::Result<f64> {
    let mut nanoseconds = 0;
    for thread in fs::read_dir("/proc/self/task")? {
        nanoseconds += of_thread(&thread?.path().join("schedstat"))?;
    }
    Ok(nanoseconds as f64 / 1e9)
}

/// The first of three numbers; 0 for a thread that has just ended.
fn of_thread(path: &Path) -> io::Result<u64> {
    match fs::read_to_string(path) {
        Ok(text) => text
            .split_whitespace()
            .next()
            .and_then(|number| number.parse().ok())
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no processor time in schedstat")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        // The thread ended between opening and reading.
        Err(error) if error.raw_os_error() == Some(ESRCH) => Ok(0),
        Err(error) => Err(error),
    }
}

/// No such process.
const ESRCH: i32 = 3;

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn work_takes_processor_time() {
        let (begin, before) = (Instant::now(), seconds().unwrap());
        let mut number = 1_u64;
        while begin.elapsed().as_millis() < 50 {
            number = std::hint::black_box(number.wrapping_mul(3));
        }
        assert!(seconds().unwrap() - before > 0.005, "{number}");
    }
}
