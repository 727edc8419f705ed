//! How the C library's allocator treats memory that is freed: libtorch takes all tensors from it.

/// Blocks of at least this many bytes are mapped for themselves and given back at once.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const MAPPED_ALONE: i32 = 32 << 20;

/// So many free bytes may stay at the end of the heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const FREE_AT_THE_END: i32 = 256 << 20;

/// Keeps freed memory for what is allocated next. Call it when a program begins.
///
/// glibc otherwise gives the end of its heap back to the system whenever some megabytes are free there. Each step of a training and each
/// batch of an evaluation frees all that it had, so that the next one gets every page anew, zeroed. Kept, on two cores: 6×64 trains
/// 1.20 times the rows a second, and self-play with it makes 1.06 times the evaluations (medians of 3 rounds in turns, set by glibc's
/// own environment variables, with 1 GB in place of 256 MiB at the heap's end). Other C libraries are left as they are.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        let settings = [
            (libc::M_MMAP_THRESHOLD, MAPPED_ALONE),
            (libc::M_TRIM_THRESHOLD, FREE_AT_THE_END),
        ];
        for (name, value) in settings {
            // SAFETY: mallopt takes any two numbers and locks the allocator while it changes it. One that it refuses leaves everything
            // as it was, which is only slower.
            unsafe { libc::mallopt(name, value) };
        }
    }
}
