//! Files that change while the server runs.

use super::client::{Identity, post};
use super::reviews::recorded;
use super::{Running, SITE, connect, patient, until};
use crate::server::ServeError;
use crate::{Limits, Mutation, Server, Settings};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[tokio::test]
async fn certificates_change_under_load_and_old_connections_stay() {
    let server = Running::start(patient()).await;
    let (first, second) = (&server.identity, Identity::new());
    let both = [first, &second];
    let review = recorded("job-create");
    let (done, answers) = (AtomicBool::new(false), AtomicUsize::new(0));
    let load = async || {
        while !done.load(Ordering::Relaxed) {
            let mut client = connect(server.address, &both).await;
            assert_eq!(client.ask(&post("/validate", review)).await.0, 200);
            answers.fetch_add(1, Ordering::Relaxed);
        }
    };
    let rotation = async {
        let mut old = connect(server.address, &both).await;
        assert_eq!(old.certificate(), first.der);
        // The certificate alone does not go with the key: nothing changes.
        server.write("tls.crt", &second.chain);
        until(async || server.counts("xmem_certificate_broken 1")).await;
        let client = connect(server.address, &both).await;
        assert_eq!(client.certificate(), first.der);
        server.write("tls.key", &second.key);
        until(async || {
            let client = connect(server.address, &both).await;
            client.certificate() == second.der
        })
        .await;
        assert_eq!(old.ask(&post("/validate", review)).await.0, 200);
        assert!(server.counts("xmem_certificate_broken 0"));
        assert!(server.counts("xmem_certificate_reloads_total 1"));
        // What is no certificate leaves the last one in use.
        server.write("tls.crt", "nonsense");
        until(async || server.counts("xmem_certificate_broken 1")).await;
        assert_eq!(connect(server.address, &both).await.certificate(), second.der);
        until(async || answers.load(Ordering::Relaxed) > 20).await;
        done.store(true, Ordering::Relaxed);
    };
    tokio::join!(load(), load(), rotation);
}

#[tokio::test]
async fn a_site_file_is_read_again_and_a_broken_one_keeps_the_last() {
    let server = Running::start(patient()).await;
    let allowed =
        async || server.review(recorded("job-create")).await.1.contains("\"allowed\":true");
    let page = |line: &str| server.counts(line);
    assert!(!allowed().await);
    server.write("site.toml", &SITE.replace("policy = \"reject\"", "policy = \"warn\""));
    until(allowed).await;
    assert!(page("xmem_site_reloads_total 1") && page("xmem_site_broken 0"));
    server.write("site.toml", "policy = \"reject\"\nnonsense");
    until(async || page("xmem_site_broken 1")).await;
    assert!(allowed().await);
    assert!(page("xmem_site_errors_total 1") && page("xmem_site_reloads_total 1"));
    std::fs::remove_file(server.folder.path().join("site.toml")).expect("removed");
    until(async || page("xmem_site_errors_total 2")).await;
    assert!(allowed().await);
    server.write("site.toml", SITE);
    until(async || !allowed().await).await;
    assert!(page("xmem_site_broken 0"));
}

#[tokio::test]
async fn a_server_does_not_start_with_files_it_cannot_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let (one, two) = (Identity::new(), Identity::new());
    let path = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).expect("written");
        path
    };
    let (chain, key, other) =
        (path("chain", &one.chain), path("key", &one.key), path("other", &two.key));
    let (broken, good) = (path("broken", "policy = 1"), path("good", SITE));
    let missing = folder.path().join("missing");
    let long = path("long", &"#".repeat((1 << 20) + 1));
    for (certificate, key, client_ca, site, reason) in [
        (&chain, &key, None, None, None),
        (&chain, &key, None, Some(&good), None),
        (&chain, &key, Some(&chain), None, None),
        (&chain, &other, None, None, Some("certificate and key do not go together")),
        (&key, &key, None, None, Some("the file has no certificate")),
        (&chain, &chain, None, None, Some("the key is not PEM")),
        (&missing, &key, None, None, Some("missing")),
        (&chain, &key, Some(&missing), None, Some("authority of clients: `")),
        (&chain, &key, Some(&good), None, Some("the file has no certificate")),
        (&chain, &key, None, Some(&broken), Some("expected a string (line 1)")),
        (&chain, &key, None, Some(&missing), Some("missing")),
        (&chain, &key, None, Some(&long), Some("longer than 1 MiB")),
    ] {
        let settings = Settings {
            listen: "127.0.0.1:0".parse().expect("an address"),
            certificate: certificate.clone(),
            key: key.clone(),
            client_ca: client_ca.cloned(),
            site: site.cloned(),
            mutation: Mutation::Off,
            limits: Limits::default(),
        };
        let error = Server::bind(settings).await.err().map(|error: ServeError| error.to_string());
        match (error, reason) {
            (None, None) => {}
            (Some(error), Some(reason)) => assert!(error.contains(reason), "{error}"),
            (error, reason) => panic!("{error:?} instead of {reason:?}"),
        }
    }
}
