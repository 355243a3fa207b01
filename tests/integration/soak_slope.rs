//! The regression line of the long run (`tests/soak`) through samples of memory: it must not report
//! growth where there is none, nor miss actual growth.

#[path = "../soak/slope.rs"]
mod slope;

use slope::slope;

/// Samples that drift by `drift` each, around which they wander, each near the one before.
fn samples(seed: u64, drift: f64) -> Vec<(f64, f64)> {
    let mut dice = fastrand::Rng::with_seed(seed);
    let mut near = 0.0;
    let mut sample = |at: u32| {
        near = 0.8 * near + dice.f64() - 0.5;
        (f64::from(at), 100.0 + drift * f64::from(at) + near)
    };
    (0..500).map(&mut sample).collect()
}

#[test]
fn what_does_not_grow_is_seldom_said_to_and_what_does_always_is() {
    let grows = |drift: f64| {
        let lines = (0..200).map(|seed| slope(&samples(seed, drift)).expect("enough samples"));
        lines.filter(|line| line.low > 0.0).count()
    };
    // One side of 95 % is 2.5 % of 200; twice that for an interval that knows only so many samples.
    assert!(grows(0.0) <= 20, "{} of 200", grows(0.0));
    assert_eq!(grows(0.01), 200);
    assert_eq!(slope(&samples(1, 0.0)[..19]), None);
}
