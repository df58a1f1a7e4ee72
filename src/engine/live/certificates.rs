//! Certificates for one run: an authority that exists for it alone, and what it signs for a proxy that speaks TLS to its clients, good
//! ones and bad ones.
//!
//! Keys are drawn from the system's generator, and from nothing else: this is the one place where a draw is no function of
//! the run's seed, for a key that can be computed again is none. No decision depends on them. They never leave memory; the authority's certificate
//! alone is written, for clients to trust. Its name holds a piece of its key, so that the authorities of two runs are told apart.

use super::file;
use crate::fault::CertificateKind;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, date_time_ymd,
};
use rustls::crypto::ring::sign::any_ecdsa_type;
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::sync::Arc;
use std::time::Duration;

/// What the first line of a file with an authority says: such a file may be replaced, and no other.
const MARK: &str = "# The authority of one run of stormwake. Remove it from whatever trusts it when the run is over.";
/// The largest file that is looked at before it is replaced.
const FILE_LIMIT: u64 = 1 << 20;
const DAY: i64 = 24 * 3600;
/// Days that a good certificate is valid for, before now and from now on: clocks differ, and no run takes longer.
const GOOD: (i64, i64) = (-2, 30);
/// Longer than that of anything it signs, so that a bad certificate is bad in itself.
const AUTHORITY: (i64, i64) = (-400, 400);
/// What `wrong_name` names: a host that cannot be there (RFC 2606).
const ELSEWHERE: &str = "somewhere-else.invalid";
/// What every certificate names.
const HERE: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Why there are no certificates.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A name that no certificate can hold, or no randomness.
    #[error("no certificate can be made: {0}")]
    Make(#[from] rcgen::Error),
    /// The library refused what was made.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
    /// The authority cannot be written.
    #[error("the authority of the run cannot be written to `{path}`: {problem}")]
    Write {
        /// Where.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

/// The authority of a run. All its proxies share it, so that a client trusts one file.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
    /// Nobody trusts this one.
    stranger: Issuer<'static, KeyPair>,
    now: i64,
}

/// The certificates of one proxy, each with the one key.
pub struct Certificates {
    /// The good one.
    pub good: Arc<CertifiedKey>,
    bad: Vec<(CertificateKind, Arc<CertifiedKey>)>,
}

impl Certificates {
    /// The certificate that is wrong in this way.
    pub fn bad(&self, kind: CertificateKind) -> &Arc<CertifiedKey> {
        let found = self.bad.iter().find(|(of, _)| *of == kind);
        &found.expect("there is one of each kind").1
    }
}

impl Authority {
    /// A new authority; `now` is in seconds since 1970 UTC.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn new(now: i64) -> Result<Self, CertificateError> {
        let (key, params) = authority("stormwake run", now)?;
        let certificate = params.self_signed(&key)?.der().clone();
        let (strange_key, strange) = authority("stormwake stranger", now)?;
        Ok(Self { issuer: Issuer::new(params, key), certificate, stranger: Issuer::new(strange, strange_key), now })
    }

    /// Its certificate.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// Its certificate in PEM, behind a line that says what it is.
    pub fn pem(&self) -> String {
        let text = base64(&self.certificate);
        let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).expect("ASCII")).collect();
        format!("{MARK}\n-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
    }

    /// Writes its certificate to a file, in the place of an earlier run's.
    ///
    /// # Errors
    /// A file that is somebody else's, or cannot be written.
    pub fn write(&self, path: &str) -> Result<(), CertificateError> {
        let failed = |problem: String| CertificateError::Write { path: path.to_string(), problem };
        match file::read(path, FILE_LIMIT) {
            Ok(bytes) if !bytes.starts_with(MARK.as_bytes()) => {
                return Err(failed("the file is there, and holds something else: name another one, or remove it".into()));
            }
            Err(file::FileError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error.to_string())),
            Ok(_) => {}
        }
        std::fs::write(path, self.pem()).map_err(|error| failed(error.to_string()))
    }

    /// Certificates for a proxy: for this machine's own names, and these.
    ///
    /// # Errors
    /// A name that no certificate can hold.
    pub fn certify(&self, names: &[String]) -> Result<Certificates, CertificateError> {
        let key = KeyPair::generate()?;
        let here = HERE.iter().map(|name| name.to_string());
        let names: Vec<String> = here.chain(names.iter().filter(|name| !HERE.contains(&name.as_str())).cloned()).collect();
        let bad = |&kind: &CertificateKind| {
            let elsewhere = [ELSEWHERE.to_string()];
            let certificate = match kind {
                CertificateKind::Expired => self.leaf(&key, &names, (-31, -1), &self.issuer),
                CertificateKind::NotYetValid => self.leaf(&key, &names, (1, 31), &self.issuer),
                CertificateKind::WrongName => self.leaf(&key, &elsewhere, GOOD, &self.issuer),
                CertificateKind::Untrusted => self.leaf(&key, &names, GOOD, &self.stranger),
            };
            certificate.map(|certificate| (kind, certificate))
        };
        let good = self.leaf(&key, &names, GOOD, &self.issuer)?;
        Ok(Certificates { good, bad: CertificateKind::ALL.iter().map(bad).collect::<Result<_, _>>()? })
    }

    fn leaf(
        &self,
        key: &KeyPair,
        names: &[String],
        lasting: (i64, i64),
        by: &Issuer<'static, KeyPair>,
    ) -> Result<Arc<CertifiedKey>, CertificateError> {
        let mut params = CertificateParams::new(names)?;
        name(&mut params, &names[0]);
        valid(&mut params, self.now, lasting);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let certificate = params.signed_by(key, by)?.der().clone();
        let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.serialize_der()));
        Ok(Arc::new(CertifiedKey::new(vec![certificate], any_ecdsa_type(&private)?)))
    }
}

fn authority(called: &str, now: i64) -> Result<(KeyPair, CertificateParams), CertificateError> {
    let key = KeyPair::generate()?;
    let piece: String = key.public_key_raw().iter().rev().take(4).map(|byte| format!("{byte:02x}")).collect();
    let mut params = CertificateParams::default();
    name(&mut params, &format!("{called} {piece}"));
    valid(&mut params, now, AUTHORITY);
    // It signs certificates of servers, and nothing below it signs any.
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    Ok((key, params))
}

fn name(params: &mut CertificateParams, common: &str) {
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common);
}

/// Valid from so many days from now to so many; in times from 1970 on.
fn valid(params: &mut CertificateParams, now: i64, (from, to): (i64, i64)) {
    let at = |days: i64| {
        let seconds = u64::try_from(now.saturating_add(days * DAY)).unwrap_or(0);
        date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds)
    };
    (params.not_before, params.not_after) = (at(from), at(to));
}

/// Base64 (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let padded = [three[0], three.get(1).copied().unwrap_or(0), three.get(2).copied().unwrap_or(0)];
        let bits = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        let letter = |place: usize| char::from(LETTERS[(bits >> (18 - 6 * place)) as usize & 63]);
        text.extend((0..4).map(|place| if place <= three.len() { letter(place) } else { '=' }));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::RootCertStore;
    use rustls::client::WebPkiServerVerifier;
    use rustls::client::danger::ServerCertVerifier;
    use rustls::{CertificateError as Wrong, Error};
    use rustls_pki_types::pem::PemObject;
    use rustls_pki_types::{ServerName, UnixTime};

    const NOW: i64 = 1_800_000_000;

    /// What a client that trusts the authority says of a certificate, for a name, so many days from now.
    fn verdict(authority: &Authority, shown: &CertifiedKey, name: &str, days: i64) -> Result<(), Error> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.pem().as_bytes()).expect("PEM")).expect("an authority");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().expect("roots");
        let when = UnixTime::since_unix_epoch(Duration::from_secs((NOW + days * DAY) as u64));
        let name = ServerName::try_from(name.to_string()).expect("a name");
        verifier.verify_server_cert(&shown.cert[0], &[], &name, &[], when).map(drop)
    }

    #[test]
    fn the_good_one_is_good_under_each_name_and_each_bad_one_is_bad_in_its_own_way() {
        let authority = Authority::new(NOW).unwrap();
        let made = authority.certify(&["provider.test".into(), "*.staging.test".into(), "localhost".into()]).unwrap();
        for name in ["localhost", "127.0.0.1", "::1", "provider.test", "a.staging.test"] {
            for days in [-1, 0, 29] {
                assert_eq!(verdict(&authority, &made.good, name, days), Ok(()), "{name} {days}");
            }
        }
        assert!(verdict(&authority, &made.good, "other.test", 0).is_err());
        let wrong = |kind| verdict(&authority, made.bad(kind), "localhost", 0).unwrap_err();
        let is = |error: Error, wanted: fn(&Wrong) -> bool| matches!(&error, Error::InvalidCertificate(why) if wanted(why));
        assert!(is(wrong(CertificateKind::Expired), |why| matches!(why, Wrong::Expired | Wrong::ExpiredContext { .. })));
        assert!(is(wrong(CertificateKind::NotYetValid), |why| matches!(
            why,
            Wrong::NotValidYet | Wrong::NotValidYetContext { .. }
        )));
        assert!(is(wrong(CertificateKind::WrongName), |why| {
            matches!(why, Wrong::NotValidForName | Wrong::NotValidForNameContext { .. })
        }));
        assert!(is(wrong(CertificateKind::Untrusted), |why| matches!(why, Wrong::UnknownIssuer)));
        // Nothing else is wrong with them.
        assert_eq!(verdict(&authority, made.bad(CertificateKind::Expired), "localhost", -2), Ok(()));
        assert_eq!(verdict(&authority, made.bad(CertificateKind::NotYetValid), "localhost", 2), Ok(()));
        assert_eq!(verdict(&authority, made.bad(CertificateKind::WrongName), ELSEWHERE, 0), Ok(()));
    }

    #[test]
    fn another_run_is_another_authority() {
        let (one, two) = (Authority::new(NOW).unwrap(), Authority::new(NOW).unwrap());
        let made = two.certify(&[]).unwrap();
        assert!(verdict(&one, &made.good, "localhost", 0).is_err());
        assert!(one.certify(&["not a name\u{e9}".into()]).is_err());
    }

    #[test]
    fn it_is_written_over_its_own_kind_and_nothing_else() {
        let folder = std::env::temp_dir().join(format!("stormwake-certificates-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name).to_str().unwrap().to_string();
        for authority in [Authority::new(NOW).unwrap(), Authority::new(NOW).unwrap()] {
            authority.write(&path("ca.pem")).unwrap();
            assert_eq!(std::fs::read_to_string(path("ca.pem")).unwrap(), authority.pem());
            assert!(!authority.pem().contains("PRIVATE"));
        }
        std::fs::write(path("theirs.pem"), "somebody's").unwrap();
        let refused = Authority::new(NOW).unwrap().write(&path("theirs.pem")).unwrap_err().to_string();
        assert!(refused.contains("holds something else"), "{refused}");
        assert_eq!(std::fs::read_to_string(path("theirs.pem")).unwrap(), "somebody's");
        assert!(Authority::new(NOW).unwrap().write(&path("no/such/folder")).is_err());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn base64_is_as_the_standard_has_it() {
        for (plain, coded) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }
}
