//! Numbers with units, short but with enough digits.

/// Three significant digits.
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

/// A whole number as it is, another with three significant digits.
pub fn plain(number: f64) -> String {
    if number.fract() == 0.0 {
        format!("{number}")
    } else {
        three_digits(number)
    }
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

/// "12.3 MiB"; below a KiB, all digits.
pub fn bytes(count: u64) -> String {
    match count {
        0 => "0".into(),
        1..1024 => format!("{count} B"),
        _ => memory(count as f64 / 1024.0),
    }
}

/// "12.3 MiB", always with one decimal.
pub fn bytes_and_tenths(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if unit == 0 {
        format!("{bytes} B")
    } else {
        format!("{value:.1} {}", units[unit])
    }
}

/// "1,234,567"
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// "1 block", "2 blocks", "1,000 processes".
pub fn counted(number: u64, noun: &str) -> String {
    let ending = match number {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", grouped(number))
}

/// "+12.3 MiB"
pub fn signed_bytes(difference: f64) -> String {
    let sign = if difference < 0.0 { "-" } else { "+" };
    format!("{sign}{}", bytes(difference.abs() as u64))
}

/// "3.2 s", "5 min", "2 h"
pub fn age(seconds: f64) -> String {
    match seconds {
        ..0.0995 => format!("{:.0} ms", seconds * 1e3),
        ..99.95 => format!("{seconds:.1} s"),
        ..5970.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
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

/// "8.5 %" for a ratio: its distance from 1.
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
    fn one_is_no_plural() {
        let words = [(0, "block"), (1, "process"), (1000, "process")];
        let words = words.map(|(number, noun)| counted(number, noun));
        assert_eq!(words, ["0 blocks", "1 process", "1,000 processes"]);
    }

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
