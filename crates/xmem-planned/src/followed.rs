//! The plan as the library reads it (`native/sequence.c`, `plan_read`).

use std::fmt::Write as _;
use xmem_types::Bytes;

/// A plan to be followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FollowedPlan {
    /// The bytes of each arena.
    pub arenas: [Bytes; 2],
    /// The requests up to the first mark.
    pub warm_up: Vec<FollowedRequest>,
    /// Those between two marks.
    pub iteration: Vec<FollowedRequest>,
}

/// A request of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowedRequest {
    /// The smallest size, rounded, for which its place is good.
    pub least: Bytes,
    /// The largest.
    pub most: Bytes,
    /// The number of its arena, and the offset there; none if it is served elsewhere.
    pub place: Option<(usize, Bytes)>,
}

impl FollowedPlan {
    /// The text of the file.
    #[must_use]
    pub fn text(&self) -> String {
        let [first, second] = self.arenas;
        let mut text = format!("xmem-plan 2 {} {}\n", first.get(), second.get());
        for (name, requests) in [("warm-up", &self.warm_up), ("iteration", &self.iteration)] {
            _ = writeln!(text, "{name} {}", requests.len());
            for FollowedRequest { least, most, place } in requests {
                let (least, most) = (least.get(), most.get());
                _ = match place {
                    Some((arena, offset)) => {
                        writeln!(text, "{least} {most} {arena} {}", offset.get())
                    }
                    None => writeln!(text, "{least} {most} 0 -1"),
                };
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_lines_of_numbers() {
        let request = |size, place| FollowedRequest { least: size, most: size, place };
        let plan = FollowedPlan {
            arenas: [Bytes(1024), Bytes(512)],
            warm_up: vec![request(Bytes(512), Some((1, Bytes(0))))],
            iteration: vec![request(Bytes(1024), None)],
        };
        let expected =
            "xmem-plan 2 1024 512\nwarm-up 1\n512 512 1 0\niteration 1\n1024 1024 0 -1\n";
        assert_eq!(plan.text(), expected);
    }
}
