//! Memory that the process needs no more: what only the start or a reload needed, and what a burst of requests has left
//! behind. Compiling a pack and opening a store touch most of the program and leave holes in the heap; connections that have
//! gone leave more of them. The kernel and the allocator keep all of it until memory is short; here it is given back, once
//! when the start is over and then whenever the process has fallen quiet, so that what it seems to need is what it needs.
//!
//! Decision to know: nothing of this is ever done while there is work. Whether there is work is read from the time that the
//! process has spent on its cores, so that requests pay nothing for it, not even a counter.
//!
//! Besides the scanning of `json` and one call in `shadow/thread.rs` the only place with `unsafe`.

use std::time::Duration;

/// How often it is looked whether the process is quiet.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);

/// Time on the cores between two looks, up to which there was no work to speak of.
const QUIET_CPU_MAX: Duration = Duration::from_millis(10);

/// Bytes that must have become resident since the last time, so that giving back is worth it.
const GROWTH_BYTES_MIN: u64 = 1 << 20;

/// Looks until so little is given back again: whoever asks once in a while shall not find cold pages each time. By then idle
/// connections have gone too, unless they are kept longer than usual.
const LOOKS_BETWEEN: u32 = 18;

/// Bytes that are given back at the first quiet look: a burst of requests has left them.
const BURST_BYTES_MIN: u64 = 16 << 20;

/// Free bytes at the end of a heap that the allocator keeps for the next burst. Its own measure, 128 KiB, is less than what the
/// answers of one turn of a core take together: it gave pages back and took them again, zeroed, with every turn.
const HEAP_SPARE_BYTES: i32 = 4 << 20;

/// Bytes from which memory comes from the kernel and goes back to it for each use. The allocator would find it out by itself,
/// were it not told the other measure.
const LARGE_BYTES: i32 = 1 << 20;

/// What to do before anything starts: has the allocator keep what bursts need. It is given back by [`keep_small`].
pub fn prepare() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the function changes settings of the allocator and has no preconditions (mallopt(3)). No other thread runs yet
        // that could be inside of it, and if one did, it would take its lock.
        unsafe {
            libc::mallopt(libc::M_TRIM_THRESHOLD, HEAP_SPARE_BYTES);
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        }
    }
}

/// What to do once the start is over: code and constants are mapped in pieces from here on (see [`objects`]), and what only the
/// start needed is given back.
pub fn settle() {
    #[cfg(target_os = "linux")]
    objects::all(objects::What::Divide);
    trim();
}

/// Gives back the heap's free pages, and the pages of code and constants. Those that are used again come back from the page
/// cache one by one. Does nothing where the system has no such thing.
pub fn trim() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        // SAFETY: the function has no preconditions and may be called from any thread (malloc_trim(3)).
        unsafe { libc::malloc_trim(0) };
    }
    #[cfg(target_os = "linux")]
    objects::all(objects::What::LetGo);
}

/// Gives memory back whenever the process has fallen quiet, until dropped.
pub async fn keep_small() {
    let mut watch = Watch::default();
    loop {
        tokio::time::sleep(LOOK_INTERVAL).await;
        let (Some(cpu), Some(resident)) = (cpu(), resident()) else { return };
        if watch.look(cpu, resident) {
            trim();
            watch.trimmed(self::cpu().unwrap_or(cpu), self::resident().unwrap_or(resident));
        }
    }
}

/// When to give back.
#[derive(Default)]
struct Watch {
    /// Time spent on the cores at the last look.
    cpu: Duration,
    /// Bytes that were left resident by the last trimming.
    left: u64,
    /// Looks to come before little is worth trimming.
    pause: u32,
    /// Whether there has been growth: then it is given back a second time after the pause, since what is freed meanwhile, by
    /// connections that end, shows in no number.
    owes: bool,
}

impl Watch {
    /// Takes the time that the process has spent on its cores since its start and what of it is resident, in bytes; whether
    /// now is the time.
    fn look(&mut self, cpu: Duration, resident: u64) -> bool {
        let is_quiet = cpu.saturating_sub(self.cpu) <= QUIET_CPU_MAX;
        self.cpu = cpu;
        self.pause = self.pause.saturating_sub(1);
        let worth = if self.pause == 0 { GROWTH_BYTES_MIN } else { BURST_BYTES_MIN };
        let has_grown = resident >= self.left.saturating_add(worth);
        if !is_quiet || !(has_grown || (self.owes && self.pause == 0)) {
            return false;
        }
        self.owes = has_grown;
        true
    }

    /// Notes that memory was given back, which takes some time itself.
    fn trimmed(&mut self, cpu: Duration, resident: u64) {
        *self = Watch { cpu, left: resident, pause: LOOKS_BETWEEN, owes: self.owes };
    }
}

/// Time that all threads have spent on the cores since the start.
fn cpu() -> Option<Duration> {
    #[cfg(unix)]
    {
        let mut spent = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `spent` is a place for the answer, valid for the call (clock_gettime(2)); it holds a time before it, too.
        let outcome = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &raw mut spent) };
        let (seconds, nanos) = (u64::try_from(spent.tv_sec).ok()?, u32::try_from(spent.tv_nsec).ok()?);
        (outcome == 0).then(|| Duration::new(seconds, nanos))
    }
    #[cfg(not(unix))]
    None
}

/// Bytes that are resident. Pages are counted as the smallest there are: this only tells growth.
fn resident() -> Option<u64> {
    const PAGE_BYTES: u64 = 4096;
    let counts = std::fs::read_to_string("/proc/self/statm").ok()?;
    Some(counts.split(' ').nth(1)?.parse::<u64>().ok()? * PAGE_BYTES)
}

/// The program and the libraries that it is linked with, as they lie in memory.
///
/// The kernel maps sixteen pages wherever one is touched, so that code of which a request runs a tenth here and there seems to be
/// needed whole, and is the last to be given up when memory is short. It never maps beyond a mapping, so the mappings are
/// divided. That costs the kernel some 200 bytes for each piece; smaller ones would save less than they add.
#[cfg(target_os = "linux")]
mod objects {
    use std::ffi::{c_int, c_void};
    use std::fs::File;
    use std::io::{BufRead as _, BufReader};
    use std::ops::Range;

    /// Bytes of a piece, and what its ends are multiples of; so many that most functions are whole.
    pub(super) const PIECE_BYTES: usize = 32 * 1024;

    /// What is done to what was mapped from files and cannot be written: code and constants.
    #[derive(Clone, Copy)]
    pub(super) enum What {
        /// Has it mapped in pieces.
        Divide,
        /// Gives its pages back.
        LetGo,
    }

    struct Order {
        what: What,
        page_bytes: usize,
        files: Files,
    }

    /// Does it to all objects, as far as the kernel confirms that they are what their headers say. Does nothing where it does
    /// not tell.
    pub(super) fn all(what: What) {
        // SAFETY: the function has no preconditions (sysconf(3)).
        let Ok(page_bytes) = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }) else { return };
        let Ok(maps) = File::open("/proc/self/maps") else { return };
        let files = Files::of(BufReader::new(maps).lines().map_while(Result::ok));
        let order = Order { what, page_bytes, files };
        // SAFETY: `each` has the type that is asked for and is given what it expects; nothing unwinds out of it. No object is
        // loaded or unloaded while it runs (dl_iterate_phdr(3)).
        unsafe { libc::dl_iterate_phdr(Some(each), (&raw const order).cast_mut().cast()) };
    }

    /// # Safety
    /// To be called by `dl_iterate_phdr` only, with a pointer to an [`Order`].
    unsafe extern "C" fn each(info: *mut libc::dl_phdr_info, _: libc::size_t, order: *mut c_void) -> c_int {
        // SAFETY: the caller gives a valid description whose headers live as long as the call, and passes on the pointer that
        // it was given.
        let (base, headers, order) = unsafe {
            let info = &*info;
            let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
            (info.dlpi_addr as usize, headers, &*order.cast::<Order>())
        };
        for header in headers {
            let segment = Segment {
                is_loaded: header.p_type == libc::PT_LOAD,
                is_writable: header.p_flags & libc::PF_W != 0,
                at: base.wrapping_add(header.p_vaddr as usize),
                bytes: header.p_filesz as usize,
            };
            let Some(pages) = segment.constant_pages(order.page_bytes) else { continue };
            if !order.files.hold(&pages) {
                continue;
            }
            match order.what {
                What::Divide => divide(pages),
                What::LetGo => let_go(pages),
            }
        }
        0
    }

    /// Every other piece is left out of core dumps, in which the contents of files have no place anyway: mappings that are
    /// advised differently are not one.
    fn divide(pages: Range<usize>) {
        for piece in pieces(pages).skip(1).step_by(2) {
            // SAFETY: the advice changes nothing that the program could notice (madvise(2), MADV_DONTDUMP).
            unsafe { libc::madvise(piece.start as *mut c_void, piece.len(), libc::MADV_DONTDUMP) };
        }
    }

    fn let_go(pages: Range<usize>) {
        // SAFETY: the kernel has listed these pages as a private mapping of a file that cannot be written ([`Files`]), so
        // that programs whose code was unpacked or moved into memory of their own are left alone. Relocations are only made
        // in segments that are writable (the linker refuses others). So none was ever written, and what is dropped is read
        // again from the file, unchanged, when it is next used (madvise(2), MADV_DONTNEED). The object stays mapped: it is
        // not unloaded while this runs.
        unsafe { libc::madvise(pages.start as *mut c_void, pages.len(), libc::MADV_DONTNEED) };
    }

    /// What is mapped from files and cannot be written, by address; what adjoins is one.
    pub(super) struct Files(Vec<Range<usize>>);

    impl Files {
        /// Out of the kernel's list, which is in the order of addresses (proc_pid_maps(5)).
        pub(super) fn of(lines: impl Iterator<Item = impl AsRef<str>>) -> Files {
            let mut files: Vec<Range<usize>> = Vec::new();
            for file in lines.filter_map(|line| constant_file(line.as_ref())) {
                match files.last_mut() {
                    Some(last) if last.end == file.start => last.end = file.end,
                    _ => files.push(file),
                }
            }
            Files(files)
        }

        /// Whether all of these pages are among them.
        pub(super) fn hold(&self, pages: &Range<usize>) -> bool {
            self.0.iter().any(|file| file.start <= pages.start && pages.end <= file.end)
        }
    }

    /// The addresses of one line of the list, if a file is mapped there, privately and not to be written.
    fn constant_file(line: &str) -> Option<Range<usize>> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let (permissions, inode) = (words.next()?.as_bytes(), words.nth(2)?);
        let address = |digits| usize::from_str_radix(digits, 16).ok();
        let is_constant = matches!(permissions, [_, b'-', _, b'p']) && inode != "0";
        is_constant.then_some(address(start)?..address(end)?)
    }

    /// A range in pieces that end at multiples of [`PIECE_BYTES`].
    pub(super) fn pieces(pages: Range<usize>) -> impl Iterator<Item = Range<usize>> {
        let mut rest = pages;
        std::iter::from_fn(move || {
            let end = (rest.start / PIECE_BYTES + 1).saturating_mul(PIECE_BYTES).min(rest.end);
            let piece = rest.start..end;
            rest.start = end;
            (!piece.is_empty()).then_some(piece)
        })
    }

    /// One part of an object, as its header says.
    pub(super) struct Segment {
        pub(super) is_loaded: bool,
        pub(super) is_writable: bool,
        pub(super) at: usize,
        pub(super) bytes: usize,
    }

    impl Segment {
        /// The whole pages of a segment that is never written.
        pub(super) fn constant_pages(&self, page_bytes: usize) -> Option<Range<usize>> {
            let start = self.at.checked_next_multiple_of(page_bytes)?;
            let end = self.at.checked_add(self.bytes)?;
            let end = end - end.checked_rem(page_bytes)?;
            (self.is_loaded && !self.is_writable && start < end).then_some(start..end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const MB: u64 = 1 << 20;

    #[test]
    fn memory_is_given_back_once_the_process_falls_quiet() {
        let mut watch = Watch::default();
        assert!(!watch.look(900 * MS, 50 * MB), "it is busy starting");
        assert!(!watch.look(2_000 * MS, 60 * MB), "and answering");
        assert!(watch.look(2_005 * MS, 60 * MB));
    }

    #[test]
    fn it_is_not_given_back_again_and_again() {
        let mut watch = Watch::default();
        watch.trimmed(900 * MS, 10 * MB);
        let looks: Vec<bool> = (1..=30).map(|look| watch.look((900 + look) * MS, 20 * MB)).collect();
        let pause = LOOKS_BETWEEN as usize - 1;
        assert_eq!(looks.iter().position(|is_time| *is_time), Some(pause));
    }

    #[test]
    fn what_a_burst_has_left_is_given_back_at_once() {
        let mut watch = Watch::default();
        watch.trimmed(900 * MS, 10 * MB);
        assert!(!watch.look(2_000 * MS, 40 * MB));
        assert!(watch.look(2_001 * MS, 40 * MB));
    }

    #[test]
    fn what_is_freed_later_is_given_back_too_and_then_it_is_over() {
        let mut watch = Watch::default();
        let mut cpu = 0;
        let mut looks_until_trimmed = |resident| {
            (1..=1000).find(|_| {
                cpu += 1;
                let is_time = watch.look(cpu * MS, resident);
                if is_time {
                    watch.trimmed(cpu * MS, resident);
                }
                is_time
            })
        };
        assert_eq!(looks_until_trimmed(50 * MB), Some(1));
        assert_eq!(looks_until_trimmed(50 * MB), Some(LOOKS_BETWEEN));
        assert_eq!(looks_until_trimmed(50 * MB), None);
    }

    #[test]
    fn little_growth_is_not_worth_it() {
        let mut watch = Watch::default();
        watch.trimmed(900 * MS, 10 * MB);
        assert!((1..=30).all(|look| !watch.look((900 + look) * MS, 10 * MB + GROWTH_BYTES_MIN - 1)));
    }

    #[test]
    fn the_work_of_giving_back_does_not_count_as_work() {
        let mut watch = Watch { pause: 1, ..Watch::default() };
        watch.trimmed(900 * MS, 0);
        watch.pause = 0;
        assert!(watch.look(901 * MS, MB));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_whole_pages_that_are_never_written_are_given_back() {
        let pages = |is_loaded, is_writable, at, bytes| {
            objects::Segment { is_loaded, is_writable, at, bytes }.constant_pages(0x1000)
        };
        assert_eq!(pages(true, false, 0x7000_0100, 0x4000), Some(0x7000_1000..0x7000_4000));
        assert_eq!(pages(true, false, 0x7000_0000, 0x4000), Some(0x7000_0000..0x7000_4000));
        assert_eq!(pages(true, true, 0x7000_0000, 0x4000), None);
        assert_eq!(pages(false, false, 0x7000_0000, 0x4000), None);
        assert_eq!(pages(true, false, 0x7000_0100, 0x1000), None, "no page of it is its own");
        assert_eq!(pages(true, false, usize::MAX - 10, 20), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn pieces_are_the_whole_and_end_where_the_kernel_looks() {
        const PIECE: usize = objects::PIECE_BYTES;
        let pieces = |range| objects::pieces(range).collect::<Vec<_>>();
        let (at, end) = (10 * PIECE + 0x1000, 12 * PIECE + 0x2000);
        assert_eq!(pieces(at..end), [at..11 * PIECE, 11 * PIECE..12 * PIECE, 12 * PIECE..end]);
        assert_eq!(pieces(PIECE..2 * PIECE), vec![PIECE..2 * PIECE; 1]);
        assert!(pieces(PIECE..PIECE).is_empty());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn only_what_the_kernel_calls_a_file_that_is_never_written_is_given_back() {
        let files = objects::Files::of(
            [
                "10000-14000 r--p 00000000 fe:01 77 /usr/bin/switchback",
                "14000-20000 r-xp 00004000 fe:01 77 /usr/bin/switchback (deleted)",
                "20000-24000 rw-p 00010000 fe:01 77 /usr/bin/switchback",
                // Code that was unpacked, or moved onto large pages, is in no file.
                "30000-40000 r-xp 00000000 00:00 0 ",
                "50000-60000 r--s 00000000 fe:01 78 /dev/shm/shared",
                "no line of the list",
            ]
            .into_iter(),
        );
        for (pages, is_held) in [
            (0x10000..0x14000, true),
            (0x12000..0x1f000, true),
            (0x1f000..0x21000, false),
            (0x20000..0x24000, false),
            (0x30000..0x31000, false),
            (0x50000..0x60000, false),
            (0xf000..0x11000, false),
        ] {
            assert_eq!(files.hold(&pages), is_held, "{pages:x?}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn code_is_mapped_in_pieces_and_runs_as_before() {
        settle();
        let program = std::env::current_exe().expect("a program has a name");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("the kernel lists our mappings");
        let bytes = |line: &str| {
            let (start, end) = line.split(' ').next()?.split_once('-')?;
            Some(usize::from_str_radix(end, 16).ok()? - usize::from_str_radix(start, 16).ok()?)
        };
        let code: Vec<usize> = maps
            .lines()
            .filter(|line| line.contains(" r-xp ") && line.ends_with(&*program.to_string_lossy()))
            .filter_map(bytes)
            .collect();
        assert!(code.len() > 100, "{code:?}");
        // Pages that are code only in part stay with the piece beside them.
        assert!(code.iter().all(|bytes| *bytes < 2 * objects::PIECE_BYTES), "{code:?}");
    }

    #[test]
    fn the_program_goes_on_as_before() {
        let words: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        trim();
        assert_eq!(words.concat().len(), 10 + 90 * 2 + 900 * 3);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn time_and_memory_are_read() {
        assert!(cpu().is_some_and(|cpu| cpu > Duration::ZERO));
        assert!(resident().is_some_and(|bytes| bytes > MB));
    }
}
