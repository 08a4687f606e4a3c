//! For SkyPilot: the resources of a task.

use std::fmt::Write as _;

/// The resources of a task that may run on each of these GPUs, `count` of them a node (SkyPilot, "SkyPilot YAML":
/// `resources.accelerators`, whose keys are a set of candidates). Without any, only comments: the lines of `why_not`.
#[must_use]
pub fn skypilot(gpus: &[&str], count: u32, margin: &str, why_not: &str) -> String {
    let free = if margin == "0%" {
        String::new()
    } else {
        format!(", with {margin} of the memory left free")
    };
    let mut page = String::new();
    if gpus.is_empty() {
        page += &format!("# The job fits on none of these GPUs{free}. On the largest:\n");
        page.extend(why_not.lines().map(|line| format!("# {line}\n")));
        return page;
    }
    page += &format!("# The job fits on each of these GPUs{free}; SkyPilot takes the cheapest.\n");
    page += "resources:\n  accelerators:\n";
    for gpu in gpus {
        let _ = writeln!(page, "    {gpu}: {count}");
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_candidates_and_none_is_a_comment() {
        let found = skypilot(&["T4", "RTX6000-Ada"], 2, "5%", "");
        assert!(found.contains("with 5% of the memory left free;"), "{found}");
        assert!(
            found.ends_with("resources:\n  accelerators:\n    T4: 2\n    RTX6000-Ada: 2\n"),
            "{found}"
        );
        let none = skypilot(&[], 1, "0%", "DOES NOT FIT\n");
        assert!(
            none.lines().all(|line| line.starts_with("# ")) && none.contains("DOES NOT FIT"),
            "{none}"
        );
    }
}
