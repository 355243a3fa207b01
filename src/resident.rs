//! Memory that the process needs no more once it serves: compiling a pack and opening a store touch most of the program and
//! leave holes in the heap, and then hardly any of it is used again. The kernel takes such pages away by itself only when
//! memory is short; here they are given back at once, so that what the process seems to need is what it needs.
//!
//! Besides the scanning of `json` the only place with `unsafe`.

/// Gives back the heap's free pages and the pages of the program itself. Those that are used again come back from the page
/// cache one by one. Does nothing where the system has no such thing.
pub fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the function has no preconditions and may be called from any thread (malloc_trim(3)).
        unsafe { libc::malloc_trim(0) };
    }
    #[cfg(target_os = "linux")]
    if let Ok(maps) = std::fs::read_to_string("/proc/self/maps")
        && let Ok(program) = std::env::current_exe()
    {
        for (start, bytes) in code(&maps, &program.to_string_lossy()) {
            // SAFETY: `start` and `bytes` are one mapping of this process, as the kernel has just listed it. It is private,
            // of a file, executable and not writable: no page of it was ever written (code is position independent and the
            // linker makes no relocations in it), so what is dropped is read again from the file, unchanged, when it is next
            // used (madvise(2), MADV_DONTNEED). Nothing unmaps the program while it runs.
            unsafe { libc::madvise(start as *mut libc::c_void, bytes, libc::MADV_DONTNEED) };
        }
    }
}

/// Start and length of the private mappings of `program` that can be executed and not written.
#[cfg(target_os = "linux")]
fn code(maps: &str, program: &str) -> Vec<(usize, usize)> {
    let of_line = |line: &str| {
        let (range, rest) = line.split_once(' ')?;
        let (rights, rest) = rest.split_once(' ')?;
        // Offset, device, inode, then the path to the end of the line.
        let path = rest.splitn(4, ' ').nth(3)?.trim_start();
        let (start, end) = range.split_once('-')?;
        let (start, end) = (usize::from_str_radix(start, 16).ok()?, usize::from_str_radix(end, 16).ok()?);
        (rights == "r-xp" && path == program).then_some((start, end.checked_sub(start)?))
    };
    maps.lines().filter_map(of_line).collect()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_the_program_is_given_back() {
        let maps = "\
55d0a0000000-55d0a0100000 r--p 00000000 fe:01 42                         /opt/a b/switchback
55d0a0100000-55d0a0f00000 r-xp 00100000 fe:01 42                         /opt/a b/switchback
55d0a0f00000-55d0a1000000 r--p 00f00000 fe:01 42                         /opt/a b/switchback
55d0a1000000-55d0a1010000 rw-p 01000000 fe:01 42                         /opt/a b/switchback
7f0000000000-7f0000100000 r-xp 00000000 fe:01 43                         /usr/lib/libc.so.6
7f0000200000-7f0000210000 rw-p 00000000 00:00 0 
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                          [vdso]
";
        assert_eq!(code(maps, "/opt/a b/switchback"), [(0x55d0a0100000, 0xe00000)]);
        assert_eq!(code(maps, "/opt/other"), []);
    }

    #[test]
    fn the_program_goes_on_as_before() {
        let words: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        trim();
        assert_eq!(words.concat().len(), 10 + 90 * 2 + 900 * 3);
    }
}
