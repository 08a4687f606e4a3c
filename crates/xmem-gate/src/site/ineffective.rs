//! Keys of a site file that say nothing where they stand.

use super::{Rules, Site};
use crate::decision::Policy;

impl Site {
    /// A sentence for each `fail-closed = true` that rejects nothing, because the policy of its table is not to
    /// reject.
    #[must_use]
    pub fn ineffective(&self) -> Vec<String> {
        let tables = [("partition", &self.partitions), ("namespace", &self.namespaces)];
        let of_tables = tables.into_iter().flat_map(|(kind, tables)| {
            tables.iter().map(move |(name, own)| (format!("{kind}.{name}."), own))
        });
        let of_site = (String::new(), &self.rules);
        let is_idle = |(path, own): &(String, &Rules)| {
            own.fail_closed == Some(true)
                && self.policy_of(own) != Policy::Reject
                && (!path.is_empty() || !self.is_inherited())
        };
        std::iter::once(of_site)
            .chain(of_tables)
            .filter(is_idle)
            .map(|(path, own)| {
                let policy = self.policy_of(own);
                format!(
                    "`{path}fail-closed` rejects nothing, because the policy is `{policy}`: it needs `{path}policy = \
                     \"reject\"`"
                )
            })
            .collect()
    }

    fn policy_of(&self, own: &Rules) -> Policy {
        own.policy.or(self.rules.policy).unwrap_or_default()
    }

    /// Returns whether a table that rejects takes `fail-closed` over from the site.
    fn is_inherited(&self) -> bool {
        let mut tables = self.partitions.values().chain(self.namespaces.values());
        tables.any(|own| own.fail_closed.is_none() && self.policy_of(own) == Policy::Reject)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fail_closed_under_a_policy_that_warns_was_taken_without_a_word() {
        for (text, expected) in [
            ("fail-closed = true", &[][..]),
            ("policy = 'reject'\nfail-closed = true", &[]),
            ("policy = 'warn'\n[partition.a]\nfail-closed = false", &[]),
            ("policy = 'warn'\nfail-closed = true", &["`fail-closed`"]),
            ("policy = 'off'\nfail-closed = true", &["`fail-closed`"]),
            (
                "policy = 'warn'\n[partition.strict]\nfail-closed = true",
                &["`partition.strict.fail-closed`"],
            ),
            ("policy = 'warn'\n[partition.a]\npolicy = 'reject'\nfail-closed = true", &[]),
            (
                "[partition.a]\npolicy = 'warn'\nfail-closed = true\n[namespace.b]\npolicy = 'off'\n\
                 fail-closed = true",
                &["`partition.a.fail-closed`", "`namespace.b.fail-closed`"],
            ),
            // A partition takes it over.
            ("policy = 'warn'\nfail-closed = true\n[partition.a]\npolicy = 'reject'", &[]),
        ] {
            let found = Site::from_toml(text).expect(text).ineffective();
            assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
            for (found, expected) in found.iter().zip(expected) {
                assert!(found.starts_with(expected), "{text}: {found}");
            }
        }
        let site = Site::from_toml("policy = 'warn'\n[partition.a]\nfail-closed = true");
        assert_eq!(
            site.expect("a site").ineffective(),
            ["`partition.a.fail-closed` rejects nothing, because the policy is `warn`: it needs \
              `partition.a.policy = \"reject\"`"]
        );
    }
}
