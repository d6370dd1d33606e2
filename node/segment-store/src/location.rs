//! Locations of stores, as settings and command lines name them.

use std::fmt;
use std::path::PathBuf;

use crate::name::StoredName;

/// Services of object stores, with their schemes.
const SCHEMES: [(&str, BucketService); 3] =
    [("s3", BucketService::S3), ("gs", BucketService::GoogleCloud), ("az", BucketService::Azure)];

/// Service of an object store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketService {
    /// Amazon S3, or what speaks its protocol.
    S3,
    GoogleCloud,
    Azure,
}

/// Bucket of an object store, with a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BucketLocation {
    pub service: BucketService,
    pub bucket: String,
    /// Prefix of all names, without a `/` at its ends.
    pub prefix: String,
}

/// Location of a store: a directory, or a bucket with a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreLocation {
    Directory(PathBuf),
    Bucket(BucketLocation),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    #[error(
        "`{0}` is no location: use an absolute path, file:///path, s3://bucket/prefix, gs://bucket/prefix or az://container/prefix"
    )]
    Form(String),
    #[error("the location has a user or a password; set the credentials of a store in the environment")]
    Credentials,
    #[error("the location has a query or a fragment; set options of a store in the environment, such as AWS_ENDPOINT")]
    Options,
}

impl StoreLocation {
    /// Parses an absolute path or a URL.
    pub fn parse(text: &str) -> Result<StoreLocation, LocationError> {
        let wrong = || LocationError::Form(text.to_owned());
        if text.starts_with('/') {
            return Ok(StoreLocation::Directory(PathBuf::from(text)));
        }
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        if rest.contains('@') {
            return Err(LocationError::Credentials);
        }
        if rest.contains(['?', '#']) {
            return Err(LocationError::Options);
        }
        if scheme == "file" && rest.starts_with('/') && !rest.contains('%') {
            return Ok(StoreLocation::Directory(PathBuf::from(rest)));
        }
        let service = SCHEMES.iter().find(|(name, _)| *name == scheme).map(|(_, service)| *service);
        let (service, path) = (service.ok_or_else(wrong)?, rest.trim_end_matches('/'));
        // A bucket and a prefix have the form of a name together.
        StoredName::new(path).map_err(|_| wrong())?;
        let (bucket, prefix) = path.split_once('/').unwrap_or((path, ""));
        let (bucket, prefix) = (bucket.to_owned(), prefix.to_owned());
        Ok(StoreLocation::Bucket(BucketLocation { service, bucket, prefix }))
    }
}

impl fmt::Display for BucketLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = SCHEMES.iter().find(|(_, service)| *service == self.service).map_or("", |(name, _)| *name);
        write!(f, "{scheme}://{}", self.bucket)?;
        if self.prefix.is_empty() { Ok(()) } else { write!(f, "/{}", self.prefix) }
    }
}

impl fmt::Display for StoreLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreLocation::Directory(directory) => write!(f, "{}", directory.display()),
            StoreLocation::Bucket(bucket) => write!(f, "{bucket}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_paths_and_buckets() {
        let directory = |text: &str| StoreLocation::Directory(PathBuf::from(text));
        assert_eq!(StoreLocation::parse("/var/backups"), Ok(directory("/var/backups")));
        assert_eq!(StoreLocation::parse("file:///var/backups"), Ok(directory("/var/backups")));
        for text in ["s3://bucket/assay/a", "gs://bucket", "az://container/a"] {
            assert_eq!(StoreLocation::parse(text).expect("a bucket").to_string(), text);
        }
        for text in ["", "backups", "./backups", "http://host/backups", "s3://", "ftp://a/b", "s3://b/../c"] {
            assert_eq!(StoreLocation::parse(text), Err(LocationError::Form(text.to_owned())), "{text}");
        }
        assert_eq!(StoreLocation::parse("s3://key:secret@bucket/a"), Err(LocationError::Credentials));
        assert_eq!(StoreLocation::parse("s3://bucket/a?endpoint=x"), Err(LocationError::Options));
    }
}
