use super::*;
use tempfile::TempDir;

struct Fixture {
    vault: Vault,
    key: Key,
    folder: TempDir,
}

fn fixture() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let vault = Vault::default();
    let key = vault.key(&folder.path().join("secrets.key")).unwrap();
    Fixture { vault, key, folder }
}

impl Fixture {
    fn keep(&mut self, name: &str, bytes: &[u8]) -> Result<(), NoRoom> {
        let (name, value) = (name.parse().unwrap(), Value::new(bytes).unwrap());
        let kept = self.vault.seal_secret(&self.key, (&name, &value), 7)?;
        self.vault.keep_secret(name, kept);
        Ok(())
    }

    fn log_in(&mut self, registry: &str, password: &str) -> Result<(), NoRoom> {
        let login = Login { username: "user".to_owned(), password: password.to_owned().into() };
        let registry = registry.parse().unwrap();
        let kept = self.vault.seal_login(&self.key, (&registry, &login), 7)?;
        self.vault.keep_login(registry, kept);
        Ok(())
    }

    fn key_of(&self, text: &str) -> Result<Key, Unusable> {
        self.vault.key(&self.folder.path().join(text))
    }
}

#[test]
fn a_value_comes_out_as_it_went_in_and_is_not_seen_in_between() {
    let mut fixture = fixture();
    fixture.keep("password", b"hunter2 hunter2").unwrap();
    fixture.log_in("reg.lan:5000", "hunter2 hunter2").unwrap();
    let name = "password".parse().unwrap();
    let value = fixture.vault.open_secret(&fixture.key, &name).unwrap().unwrap();
    assert_eq!(*value.expose(), b"hunter2 hunter2");
    let login = fixture.vault.login(&fixture.key, &"reg.lan:5000".parse().unwrap()).unwrap();
    assert_eq!(login.password.expose(), "hunter2 hunter2");
    let text = serde_json::to_string(&fixture.vault).unwrap();
    let encoded: String = edgeloom_common::secret::Secret::from(value).into();
    assert!(!text.contains("hunter2") && !text.contains(&encoded), "{text}");
}

#[test]
fn names_and_bytes_are_bounded_and_a_replaced_value_leaves_its_room() {
    let mut fixture = fixture();
    let quarter = vec![b'x'; TOTAL_MAX / 4];
    for name in ["a", "b", "c", "d"] {
        fixture.keep(name, &quarter).unwrap();
    }
    assert_eq!(fixture.keep("e", b"x"), Err(NoRoom::Bytes { bytes: TOTAL_MAX + 1 }));
    assert!(matches!(fixture.log_in("reg.lan", "x"), Err(NoRoom::Bytes { .. })));
    fixture.keep("a", b"x").unwrap();
    fixture.log_in("reg.lan", "x").unwrap();
    for number in 0..COUNT_MAX - 5 {
        fixture.keep(&format!("s{number}"), b"x").unwrap();
    }
    assert_eq!(fixture.keep("one-more", b"x"), Err(NoRoom::Count));
    fixture.keep("b", b"x").unwrap();
}

#[test]
fn every_change_has_a_revision_of_its_own() {
    let mut fixture = fixture();
    let name: SecretName = "a".parse().unwrap();
    assert_eq!(fixture.vault.revision_of(&name), 0);
    fixture.keep("a", b"1").unwrap();
    let first = fixture.vault.revision_of(&name);
    fixture.keep("b", b"1").unwrap();
    fixture.vault.remove_secret(&name);
    fixture.vault.remove_secret(&"b".parse().unwrap());
    fixture.keep("a", b"1").unwrap();
    assert!(fixture.vault.revision_of(&name) > first + 1);
}

#[test]
fn a_key_that_is_missing_or_another_is_told_with_the_remedy() {
    let mut fixture = fixture();
    assert!(fixture.key_of("another.key").is_ok(), "nothing is sealed yet, so any key serves");
    fixture.keep("a", b"hunter2").unwrap();
    assert!(fixture.key_of("secrets.key").is_ok());
    let wrong = fixture.key_of("another.key").unwrap_err();
    assert!(matches!(wrong, Unusable::Wrong { .. }), "{wrong}");
    assert!(wrong.to_string().contains("secret a") && wrong.to_string().contains("--forget-secrets"));
    let missing = fixture.key_of("none.key").unwrap_err();
    assert!(matches!(missing, Unusable::Missing { count: 1, .. }), "{missing}");
    assert!(!fixture.folder.path().join("none.key").exists(), "no key is made that opens nothing");
    fixture.vault.clear();
    assert!(fixture.key_of("another.key").is_ok());
}

#[test]
fn a_value_put_in_anothers_place_does_not_open() {
    let mut fixture = fixture();
    fixture.keep("a", b"hunter2").unwrap();
    fixture.keep("b", b"other").unwrap();
    let stolen = fixture.vault.secrets[&"a".parse::<SecretName>().unwrap()].clone();
    fixture.vault.keep_secret("b".parse().unwrap(), stolen);
    let damaged = fixture.key_of("secrets.key").unwrap_err();
    assert!(matches!(&damaged, Unusable::Damaged { what, .. } if what == "secret b"), "{damaged}");
}
