//! Numbers with units, in as few characters as say enough.

/// Three digits that count.
fn three_digits(number: f64) -> String {
    let digits = if number >= 100.0 {
        0
    } else if number >= 10.0 {
        1
    } else {
        2
    };
    format!("{number:.digits$}")
}

pub fn duration(seconds: f64) -> String {
    let (number, unit) = if seconds < 1e-3 {
        (seconds * 1e6, "µs")
    } else if seconds < 1.0 {
        (seconds * 1e3, "ms")
    } else {
        (seconds, "s")
    };
    format!("{} {unit}", three_digits(number))
}

pub fn memory(kib: f64) -> String {
    let mut number = kib;
    let mut units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"].into_iter();
    let mut unit = units.next().unwrap_or_default();
    while number >= 1024.0
        && let Some(next) = units.next()
    {
        number /= 1024.0;
        unit = next;
    }
    format!("{} {unit}", three_digits(number))
}

pub fn count(number: f64) -> String {
    if number < 1e4 {
        format!("{number:.0}")
    } else if number < 1e6 {
        format!("{} k", three_digits(number / 1e3))
    } else {
        format!("{} M", three_digits(number / 1e6))
    }
}

/// "8.5 %", of a ratio: how far it is from 1.
pub fn percent(ratio: f64) -> String {
    let percent = (ratio - 1.0).abs() * 100.0;
    if percent < 10.0 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit_say_enough() {
        assert_eq!(duration(0.000_012_34), "12.3 µs");
        assert_eq!(duration(0.1234), "123 ms");
        assert_eq!(duration(1.234), "1.23 s");
        assert_eq!(memory(1536.0), "1.50 MiB");
        assert_eq!(memory(3.0 * 1024.0 * 1024.0), "3.00 GiB");
        assert_eq!(memory(1024_f64.powi(5)), "1.00 EiB");
        assert_eq!(count(123_456.0), "123 k");
        assert_eq!(percent(0.915), "8.5 %");
    }
}
