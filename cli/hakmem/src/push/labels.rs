//! The labels of a profile that is sent: the service, the host, the container, and those that the user gives.

use hakmem_heap::shown::shown;
use std::fs;
use std::os::unix::ffi::OsStrExt;

pub const SERVICE: &str = "service_name";
const HOST: &str = "host";
const CONTAINER: &str = "container";
/// The length of a container's ID.
const ID_LETTERS: usize = 64;

/// Names and values; each name occurs once.
pub struct Labels {
    pub pid: i32,
    all: Vec<(String, String)>,
}

impl Labels {
    /// The labels of a process, and the user's, which take precedence.
    pub fn of(pid: i32, given: &[(String, String)]) -> Labels {
        let mut all = Vec::new();
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let program = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
        let program = program.file_name().map(|name| shown(name.as_bytes()));
        let program = program.unwrap_or_default();
        let program = program.trim_end_matches(" (deleted)");
        all.push((SERVICE.into(), program.into()));
        all.push((HOST.into(), read("/proc/sys/kernel/hostname").trim().into()));
        let groups = read(&format!("/proc/{pid}/cgroup"));
        all.extend(container(&groups).map(|id| (CONTAINER.into(), id.into())));
        for (name, value) in given {
            let name = if name == "service" { SERVICE } else { name };
            all.retain(|(known, _)| known != name);
            all.push((name.into(), value.clone()));
        }
        all.retain(|(_, value)| !value.is_empty());
        Labels { pid, all }
    }

    pub fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        let all = self.all.iter();
        all.map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// "service=orders".
pub fn parse(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=');
    let is_name = |name: &str| {
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "_.-".contains(letter);
        !name.is_empty()
            && name.chars().all(fits)
            && !name.starts_with(|l: char| l.is_ascii_digit())
    };
    parts
        .filter(|(name, _)| is_name(name) && *name != "__name__")
        .map(|(name, value)| (name.into(), value.into()))
        .ok_or_else(|| {
            "a label is NAME=VALUE, such as service=orders; a name has letters, digits, _, . and -"
                .into()
        })
}

/// The name in the form of a Prometheus label.
pub fn as_word(name: &str) -> String {
    name.replace(['.', '-'], "_")
}

/// The name of an attribute in OpenTelemetry's conventions.
pub fn as_attribute(name: &str) -> &str {
    match name {
        SERVICE => "service.name",
        HOST => "host.name",
        CONTAINER => "container.id",
        other => other,
    }
}

/// The container's ID, from a process's control group.
fn container(groups: &str) -> Option<&str> {
    groups
        .split(|letter: char| !letter.is_ascii_hexdigit())
        .find(|word| word.len() == ID_LETTERS)
}

/// 16 random bytes in the form of RFC 9562.
pub fn random_uuid() -> String {
    let bits = fastrand::u128(..) & !(0xF << 76) & !(0x3 << 62) | 0x4 << 76 | 0x2 << 62;
    let digits = format!("{bits:032x}");
    let parts = [0..8, 8..12, 12..16, 16..20, 20..32].map(|range| &digits[range]);
    parts.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_users_label_counts_for_more() {
        let pid = std::process::id() as i32;
        let given = [("service", "orders"), ("host", ""), ("tier", "a=b")];
        let given = given.map(|(name, value)| (name.to_string(), value.to_string()));
        let labels = Labels::of(pid, &given);
        let find = |wanted: &str| labels.all().find(|(name, _)| *name == wanted);
        assert_eq!(find(SERVICE), Some((SERVICE, "orders")));
        assert_eq!(find("tier"), Some(("tier", "a=b")));
        assert_eq!(find("host"), None);
        assert!(Labels::of(pid, &[]).all().any(|(name, _)| name == SERVICE));
    }

    #[test]
    fn labels_have_names() {
        assert_eq!(parse("k8s.pod=a=b"), Ok(("k8s.pod".into(), "a=b".into())));
        for text in ["a", "=b", "1a=b", "a b=c", "__name__=cpu"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(as_word("k8s.pod-name"), "k8s_pod_name");
    }

    #[test]
    fn a_container_is_found_in_its_control_group() {
        let id = "0123456789abcdef".repeat(4);
        let groups = format!("0::/system.slice/docker-{id}.scope\n");
        assert_eq!(container(&groups), Some(id.as_str()));
        assert_eq!(container("0::/user.slice/user-1000.slice\n"), None);
    }

    #[test]
    fn a_number_is_of_version_4() {
        let uuid = random_uuid();
        assert_eq!((uuid.len(), &uuid[14..15]), (36, "4"));
        assert!("89ab".contains(&uuid[19..20]), "{uuid}");
    }
}
