//! The text of a manifest: YAML or JSON, one or more documents.
//!
//! Annotations are put into the text as it is, so that comments and order stay. The meaning of objects is
//! left to [`kubernetes`](crate::kubernetes).

mod edit;
mod error;
mod tree;

pub use error::ManifestError;

use crate::template_path::PathStep;
use serde_json::Value;
use tree::Node;

/// Where annotations of a pod template are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationPlace {
    /// The index of the document.
    pub document: usize,
    /// The path of the template in it.
    pub path: Vec<PathStep>,
    /// The map there that has the annotations: `metadata`, or another one from which a controller takes them.
    pub holder: &'static str,
}

/// A manifest.
#[derive(Clone, Debug)]
pub struct Manifest {
    text: String,
    documents: Vec<Node>,
}

impl Manifest {
    /// Reads a manifest. Of scalars without quotes, those of YAML's core schema have types (YAML 1.2.2,
    /// section 10.3); the rest is text.
    ///
    /// # Errors
    /// If it is not YAML, or nested or repeated without measure.
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        Ok(Self { text: text.to_owned(), documents: tree::documents(text)? })
    }

    /// The documents as values, in the order of the text. Empty documents are `null`.
    #[must_use]
    pub fn values(&self) -> Vec<Value> {
        self.documents.iter().map(Node::value).collect()
    }

    /// The text with annotations of the pod templates at these places. Values that are there are replaced.
    ///
    /// # Errors
    /// If the text at a place cannot be changed, or the changed text says anything else than the manifest
    /// with these annotations.
    pub fn annotated(
        &self,
        places: &[AnnotationPlace],
        annotations: &[(&str, String)],
    ) -> Result<String, ManifestError> {
        let mut expected = self.values();
        let mut edits = Vec::new();
        for AnnotationPlace { document, path, holder } in places {
            let node = self.documents.get(*document).ok_or(ManifestError::Unverified)?;
            edits.extend(edit::annotate(&self.text, node, (path, holder), annotations)?);
            let value = expected.get_mut(*document).ok_or(ManifestError::Unverified)?;
            expect(value, (path, holder), annotations).ok_or(ManifestError::Unverified)?;
        }
        let changed = edit::apply(&self.text, edits);
        match Self::parse(&changed) {
            Ok(read) if read.values() == expected => Ok(changed),
            _ => Err(ManifestError::Unverified),
        }
    }
}

/// Sets annotations in a value.
fn expect(
    value: &mut Value,
    (path, holder): (&[PathStep], &str),
    annotations: &[(&str, String)],
) -> Option<()> {
    let mut template = value;
    for step in path {
        template = match step {
            PathStep::Key(key) => template.get_mut(key)?,
            PathStep::Index(at) => template.get_mut(at)?,
        };
    }
    let empty = || Value::Object(serde_json::Map::new());
    let mut map = template;
    for key in [holder, "annotations"] {
        map = map.as_object_mut()?.entry(key).or_insert_with(empty);
        if map.is_null() {
            *map = empty();
        }
    }
    let map = map.as_object_mut()?;
    for (key, value) in annotations {
        map.insert((*key).to_owned(), Value::String(value.clone()));
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kubernetes::find_templates;
    use expect_test::{Expect, expect};

    fn annotated(text: &str) -> Result<String, ManifestError> {
        let manifest = Manifest::parse(text)?;
        let values = manifest.values();
        let places = values.iter().enumerate().flat_map(|(at, value)| {
            let templates = find_templates(value, &|_, _| Vec::new());
            templates.into_iter().map(move |template| template.annotation_place(at))
        });
        let annotations =
            [("xmem.dev/peak-bytes", "123".to_owned()), ("xmem.dev/context-bytes", "4".to_owned())];
        manifest.annotated(&places.collect::<Vec<_>>(), &annotations)
    }

    fn check(text: &str, expected: Expect) {
        let changed = annotated(text).expect(text);
        expected.assert_eq(&changed);
        // Once more changes nothing.
        assert_eq!(annotated(&changed).as_ref(), Ok(&changed));
    }

    #[test]
    fn comments_and_order_stay() {
        check(
            "\
# The nightly run.
apiVersion: batch/v1
kind: Job
metadata: {name: train}   # not this one
spec:
  template:
    metadata:
      # Labels for the dashboard.
      labels: {app: train}
      annotations:  # Of others.
        # Keep.
        example.org/owner: 'me'   # really

    spec:
      containers: []
",
            expect![[r#"
                # The nightly run.
                apiVersion: batch/v1
                kind: Job
                metadata: {name: train}   # not this one
                spec:
                  template:
                    metadata:
                      # Labels for the dashboard.
                      labels: {app: train}
                      annotations:  # Of others.
                        xmem.dev/peak-bytes: "123"
                        xmem.dev/context-bytes: "4"
                        # Keep.
                        example.org/owner: 'me'   # really

                    spec:
                      containers: []
            "#]],
        );
    }

    #[test]
    fn missing_and_empty_maps_are_made() {
        for (metadata, line) in [
            ("", ""),
            ("    metadata:\n", ""),
            ("    metadata: {}\n", ""),
            ("    metadata: null # none\n", "# none"),
            ("    metadata:\n      creationTimestamp: null\n", "creationTimestamp"),
            ("    metadata:\n      annotations:\n      labels: {a: b}\n", "labels: {a: b}"),
            ("    metadata:\n      labels: {a: b}\n      annotations: {} # none\n", "# none"),
            ("    metadata:\n      labels: {a: b}\n      annotations: ~\n", "labels"),
            ("    metadata: {labels: {a: b}}\n", "labels: {a: b}"),
            ("    metadata: {annotations: {}, labels: {a: b}}\n", "labels: {a: b}"),
            ("    metadata: {annotations: {x: y}}\n", "x: y"),
        ] {
            let text = format!(
                "apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n{metadata}    spec:\n      containers: []\n"
            );
            let changed = annotated(&text).expect(&text);
            assert!(changed.contains(line), "{changed}");
            assert!(
                changed.contains("xmem.dev/peak-bytes\": \"123\"")
                    || changed.contains("xmem.dev/peak-bytes: \"123\""),
                "{changed}"
            );
            assert_eq!(annotated(&changed).as_ref(), Ok(&changed), "{text}");
        }
    }

    #[test]
    fn old_values_are_replaced_in_any_style() {
        for value in
            ["1", "'1'", "\"1\"", "!!str 1", ">-\n          1", "|\n          1\n          2"]
        {
            let text = format!(
                "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations:\n    a: b\n    xmem.dev/peak-bytes: {value}\n    \
                 c: d\nspec: {{}}\n"
            );
            let changed = annotated(&text).expect(&text);
            assert!(changed.contains("    xmem.dev/peak-bytes: \"123\"\n    c: d\n"), "{changed}");
            assert!(changed.contains("    xmem.dev/context-bytes: \"4\"\n    a: b\n"), "{changed}");
        }
    }

    #[test]
    fn every_template_of_every_document_is_annotated() {
        check(
            "\
---
apiVersion: v1
kind: ConfigMap
data: {a: \"b\"}
---
apiVersion: kubeflow.org/v1
kind: PyTorchJob
spec:
  pytorchReplicaSpecs:
    Master:
      template: # the first rank
        spec: {containers: []}
    Worker:
      template:
        metadata:
          labels:
            é: ü   # not ASCII
        spec:
          containers: []
---
# nothing
---
apiVersion: v1
kind: List
items:
- kind: Pod
  apiVersion: v1
  metadata:
    name: x
",
            expect![[r#"
                ---
                apiVersion: v1
                kind: ConfigMap
                data: {a: "b"}
                ---
                apiVersion: kubeflow.org/v1
                kind: PyTorchJob
                spec:
                  pytorchReplicaSpecs:
                    Master:
                      template: # the first rank
                        metadata:
                          annotations:
                            xmem.dev/peak-bytes: "123"
                            xmem.dev/context-bytes: "4"
                        spec: {containers: []}
                    Worker:
                      template:
                        metadata:
                          annotations:
                            xmem.dev/peak-bytes: "123"
                            xmem.dev/context-bytes: "4"
                          labels:
                            é: ü   # not ASCII
                        spec:
                          containers: []
                ---
                # nothing
                ---
                apiVersion: v1
                kind: List
                items:
                - kind: Pod
                  apiVersion: v1
                  metadata:
                    annotations:
                      xmem.dev/peak-bytes: "123"
                      xmem.dev/context-bytes: "4"
                    name: x
            "#]],
        );
    }

    #[test]
    fn json_stays_json() {
        check(
            r#"{"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {
  "metadata": {"labels": {"a": "b"}}, "spec": {}}}}
"#,
            expect![[r#"
                {"apiVersion": "batch/v1", "kind": "Job", "spec": {"template": {
                  "metadata": {"annotations": {"xmem.dev/peak-bytes": "123", "xmem.dev/context-bytes": "4"}, "labels": {"a": "b"}}, "spec": {}}}}
            "#]],
        );
        let compact = r#"{"apiVersion":"batch/v1","kind":"Job","spec":{"template":{"spec":{}}}}"#;
        let changed = annotated(compact).expect("annotated");
        assert!(serde_json::from_str::<Value>(&changed).is_ok(), "{changed}");
    }

    #[test]
    fn line_ends_of_windows_stay() {
        let text = "apiVersion: v1\r\nkind: Pod\r\nmetadata:\r\n  name: x\r\nspec: {}\r\n";
        let changed = annotated(text).expect("annotated");
        assert_eq!(changed.matches('\n').count(), changed.matches("\r\n").count());
    }

    #[test]
    fn what_cannot_be_changed_alone_is_refused() {
        for (text, reason) in [
            (
                "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n    Master: &m\n      \
                 template:\n        spec: {}\n    Worker: *m\n",
                "is used in other places, too",
            ),
            (
                "apiVersion: batch/v1\nkind: Job\nx: &m {labels: {a: b}}\nspec:\n  template:\n    metadata:\n      \
                 <<: *m\n    spec: {}\n",
                "",
            ),
            (
                "apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    metadata: text\n",
                "is not a map",
            ),
            (
                "apiVersion: v1\nkind: Pod\nmetadata:\n  annotations: &a\n    x: y\nspec: {nodeSelector: *a}\n",
                "is used in other places, too",
            ),
        ] {
            match annotated(text) {
                Err(error) => assert!(error.to_string().contains(reason), "{text}: {error}"),
                // A merged map stays as it is.
                Ok(changed) => {
                    assert!(reason.is_empty() && changed.contains("<<: *m"), "{changed}");
                }
            }
        }
    }

    #[test]
    fn text_that_is_no_manifest_is_an_error_with_a_place() {
        let (deep, deep_lists) = ("[".repeat(5000), "- ".repeat(5000));
        let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for (name, before) in
            ["b", "c", "d", "e", "f", "g", "h"].iter().zip(["a", "b", "c", "d", "e", "f", "g"])
        {
            let refs = vec![format!("*{before}"); 10].join(", ");
            bomb += &format!("{name}: &{name} [{refs}]\n");
        }
        for (text, reason) in [
            ("a: [1", "line "),
            ("a: b: c", "line 1"),
            ("a: 1\na: 2\n", "line 2, column 1: the key `a` is there twice"),
            ("{? [a] : b}", "a key is not text"),
            (deep.as_str(), "recursion limit"),
            (deep_lists.as_str(), "nested too deeply"),
            (bomb.as_str(), "too large"),
            ("a: *b", "line 1"),
        ] {
            let error = Manifest::parse(text).expect_err("no manifest").to_string();
            assert!(error.contains(reason), "{error}");
        }
    }

    #[test]
    fn scalars_have_the_types_of_the_core_schema() {
        let text =
            "[1, -2, 0x10, 0o17, 1.5, 1e3, true, ~, null, '', yes, '1', \"x\\n\", 1.2.3, 08, .inf]";
        let value = Manifest::parse(text).expect("yaml").values().remove(0);
        let expected = serde_json::json!([
            1, -2, 16, 15, 1.5, 1000.0, true, null, null, "", "yes", "1", "x\n", "1.2.3", 8, ".inf"
        ]);
        assert_eq!(value, expected);
        assert_eq!(Manifest::parse("").expect("yaml").values(), [] as [Value; 0]);
        let merged = "a: &a {x: 1, y: 2}\nb:\n  <<: *a\n  y: 3\n";
        let value = Manifest::parse(merged).expect("yaml").values().remove(0);
        assert_eq!(value["b"], serde_json::json!({"x": 1, "y": 3}));
    }
}
