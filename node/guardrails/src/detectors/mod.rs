//! Built-in detectors of personal data and secrets. Each reads a text once, and prefers to miss over to find too much.

mod contact;
mod network;
mod payment;
mod scan;
mod secrets;

use std::ops::Range;

/// Kind of personal data, or of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Detector {
    Email,
    /// Numbers with a country code, and the usual national forms of North America, France, Britain and Germany.
    Phone,
    /// IPv4 and IPv6.
    IpAddress,
    /// Numbers of the usual issuers with a valid check digit.
    CreditCard,
    /// IBANs of the right length with valid check digits.
    Iban,
    /// Social security numbers of the United States, with hyphens.
    UsSsn,
    /// Keys of usual providers, by their prefixes.
    ApiKey,
    Jwt,
    /// Private keys in PEM.
    PrivateKey,
}

impl Detector {
    pub const ALL: [Detector; 9] = [
        Detector::Email,
        Detector::Phone,
        Detector::IpAddress,
        Detector::CreditCard,
        Detector::Iban,
        Detector::UsSsn,
        Detector::ApiKey,
        Detector::Jwt,
        Detector::PrivateKey,
    ];

    /// Names of all detectors in the stored form.
    pub const NAMES: [&str; 9] = {
        let mut names = [""; 9];
        let mut index = 0;
        while index < names.len() {
            names[index] = Detector::ALL[index].name();
            index += 1;
        }
        names
    };

    /// Returns the name in the stored form.
    pub const fn name(self) -> &'static str {
        match self {
            Detector::Email => "email",
            Detector::Phone => "phone",
            Detector::IpAddress => "ip_address",
            Detector::CreditCard => "credit_card",
            Detector::Iban => "iban",
            Detector::UsSsn => "us_ssn",
            Detector::ApiKey => "api_key",
            Detector::Jwt => "jwt",
            Detector::PrivateKey => "private_key",
        }
    }

    pub fn named(name: &str) -> Option<Detector> {
        Detector::ALL.into_iter().find(|detector| detector.name() == name)
    }

    /// Returns what stands for a match that is masked.
    pub fn placeholder(self) -> &'static str {
        match self {
            Detector::Email => "[EMAIL]",
            Detector::Phone => "[PHONE]",
            Detector::IpAddress => "[IP_ADDRESS]",
            Detector::CreditCard => "[CREDIT_CARD]",
            Detector::Iban => "[IBAN]",
            Detector::UsSsn => "[US_SSN]",
            Detector::ApiKey => "[API_KEY]",
            Detector::Jwt => "[JWT]",
            Detector::PrivateKey => "[PRIVATE_KEY]",
        }
    }

    /// Returns the next match at or behind a position, in bytes. What is before the position counts as masked.
    pub fn find(self, text: &str, from: usize) -> Option<Range<usize>> {
        let rest = text.get(from..)?;
        let bytes = rest.as_bytes();
        let found = match self {
            Detector::Email => contact::email(bytes),
            Detector::Phone => contact::phone(bytes),
            Detector::IpAddress => network::address(rest),
            Detector::CreditCard => payment::credit_card(bytes),
            Detector::Iban => payment::iban(bytes),
            Detector::UsSsn => payment::us_ssn(bytes),
            Detector::ApiKey => secrets::api_key(bytes),
            Detector::Jwt => secrets::jwt(bytes),
            Detector::PrivateKey => secrets::private_key(rest),
        };
        found.map(|found| from + found.start..from + found.end)
    }
}

#[cfg(test)]
mod tests;
