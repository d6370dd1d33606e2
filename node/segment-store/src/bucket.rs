//! Store in a bucket of an object store: S3 and what speaks it, Google Cloud Storage, Azure.
//!
//! Credentials and the endpoint come from the usual environment variables of each service, such as
//! `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY`, `AWS_REGION` and `AWS_ENDPOINT`.
//!
//! Requests fail and hang in practice. `attempts` limits their time and repeats operations.

use std::ffi::OsString;
use std::ops::Range;
use std::sync::Arc;

use assay_node_egress::{
    AllowEntry, EgressClient, EgressConfig, EgressPolicy, EgressPurpose, EgressSettings, EgressUrl, OwnEndpoints,
    PortRange, TrustedRoots, UrlError, UrlHost, UrlScheme,
};
use bytes::{Bytes, BytesMut};
use futures::future::BoxFuture;
use futures::{StreamExt, TryStreamExt};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path;
use object_store::{ClientOptions, MultipartId, ObjectMeta, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig};

use crate::attempts::repeated;
use crate::connector::EgressConnector;
use crate::error::StoreError;
use crate::location::{BucketLocation, BucketService};
use crate::name::StoredName;
use crate::{CHUNK_BYTES_MAX, Chunks, SegmentStore, StoredObject};

/// Size of the parts of a large object. S3 accepts at most 10,000 parts, so an object has at most 80 GB.
const PART_BYTES: usize = CHUNK_BYTES_MAX;
/// Objects of one page of a list, which services send by default.
const PAGE_OBJECTS: usize = 1_000;

/// Client of a bucket, which also writes large objects in parts.
trait BucketClient: ObjectStore + MultipartStore {}

impl<T: ObjectStore + MultipartStore> BucketClient for T {}

/// Store in a bucket, below a prefix.
#[derive(Clone, Debug)]
pub struct BucketStore {
    bucket: Arc<dyn BucketClient>,
    prefix: String,
    location: String,
}

impl BucketStore {
    /// Opens a bucket with the credentials in the environment. Sends no request.
    pub fn open(location: &BucketLocation) -> Result<BucketStore, StoreError> {
        let text = |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        BucketStore::with_variables(location, std::env::vars_os().filter_map(text))
    }

    /// Opens a bucket with credentials and options from these variables. Sends no request.
    pub fn with_variables(
        location: &BucketLocation,
        variables: impl IntoIterator<Item = (String, String)>,
    ) -> Result<BucketStore, StoreError> {
        let text = location.to_string();
        let failed = |why: String| StoreError::Bucket { location: text.clone(), doing: "opening".into(), why };
        let variables: Vec<_> = variables.into_iter().collect();
        let endpoint = endpoint_of(location.service, &variables).map_err(failed)?;
        let connector = EgressConnector { client: client_for(endpoint.as_ref()).map_err(failed)? };
        let is_plain = endpoint.is_some_and(|url| url.origin().scheme == UrlScheme::Http);
        let options = ClientOptions::new().with_allow_http(is_plain);
        let bucket = connected(location, &variables, (options, connector)).map_err(|why| failed(why.to_string()))?;
        let prefix = if location.prefix.is_empty() { String::new() } else { format!("{}/", location.prefix) };
        Ok(BucketStore { bucket, prefix, location: text })
    }

    fn path_of(&self, name: &str) -> Path {
        Path::from(format!("{}{name}", self.prefix))
    }

    /// Returns the answer to a request, or `None` if there is no such object.
    fn answered<T>(&self, doing: &str, answer: object_store::Result<T>) -> Result<Option<T>, StoreError> {
        match answer {
            Ok(value) => Ok(Some(value)),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(why) => Err(self.failed(doing, &why)),
        }
    }

    fn failed(&self, doing: &str, why: &object_store::Error) -> StoreError {
        StoreError::Bucket { location: self.location.clone(), doing: doing.to_owned(), why: with_causes(why) }
    }

    fn missing(&self, name: &StoredName) -> StoreError {
        StoreError::Missing { location: self.location.clone(), name: name.clone() }
    }

    /// Writes an object in parts. The first bytes are given.
    async fn put_parts(&self, name: &StoredName, first: BytesMut, content: Chunks) -> Result<u64, StoreError> {
        let path = self.path_of(name.as_str());
        let failed = |why| self.failed(&format!("writing {name}"), &why);
        let upload = repeated(|| self.bucket.create_multipart(&path)).await.map_err(failed)?;
        let written = self.write_parts(name, &upload, first, content).await;
        let completed = match written {
            Ok((bytes, parts)) => self.complete(&path, &upload, (bytes, parts)).await.map_err(failed),
            Err(why) => Err(why),
        };
        if completed.is_err() {
            // The parts cost space until the upload is aborted. A rule of the bucket removes those of lost processes.
            let _ = repeated(|| self.bucket.abort_multipart(&path, &upload)).await;
        }
        completed
    }

    /// Writes the parts of an upload, and returns their bytes and ids.
    async fn write_parts(
        &self,
        name: &StoredName,
        upload: &MultipartId,
        mut waiting: BytesMut,
        mut content: Chunks,
    ) -> Result<(u64, Vec<PartId>), StoreError> {
        let path = self.path_of(name.as_str());
        let (mut bytes, mut parts) = (0, Vec::new());
        loop {
            let next = content.next().await.transpose()?;
            let is_last = next.is_none();
            waiting.extend_from_slice(&next.unwrap_or_default());
            while waiting.len() >= PART_BYTES || (is_last && !waiting.is_empty()) {
                let part = PutPayload::from_bytes(waiting.split_to(waiting.len().min(PART_BYTES)).freeze());
                bytes += part.content_length() as u64;
                let written = repeated(|| self.bucket.put_part(&path, upload, parts.len(), part.clone())).await;
                parts.push(written.map_err(|why| self.failed(&format!("writing {name}"), &why))?);
            }
            if is_last {
                return Ok((bytes, parts));
            }
        }
    }

    /// Lists the objects below a path page by page, so that a failure repeats one request only.
    async fn all_below(&self, path: &Path, behind: Option<Path>) -> object_store::Result<Vec<ObjectMeta>> {
        let mut found: Vec<ObjectMeta> = Vec::new();
        loop {
            let behind = found.last().map(|object| &object.location).or(behind.as_ref());
            let page = repeated(|| {
                let objects = match behind {
                    Some(behind) => self.bucket.list_with_offset(Some(path), behind),
                    None => self.bucket.list(Some(path)),
                };
                objects.take(PAGE_OBJECTS).try_collect::<Vec<_>>()
            });
            let page = page.await?;
            let is_last = page.len() < PAGE_OBJECTS;
            found.extend(page);
            if is_last {
                return Ok(found);
            }
        }
    }

    /// Completes an upload, and returns its bytes.
    async fn complete(
        &self,
        path: &Path,
        upload: &MultipartId,
        (bytes, parts): (u64, Vec<PartId>),
    ) -> object_store::Result<u64> {
        let Err(why) = repeated(|| self.bucket.complete_multipart(path, upload, parts.clone())).await else {
            return Ok(bytes);
        };
        // If the answer to a successful attempt was lost, later ones find no upload.
        match repeated(|| self.bucket.head(path)).await {
            Ok(found) if found.size == bytes => Ok(bytes),
            _ => Err(why),
        }
    }
}

/// Returns the client of a service, with the options that variables name.
fn connected(
    location: &BucketLocation,
    variables: &[(String, String)],
    (options, connector): (ClientOptions, EgressConnector),
) -> object_store::Result<Arc<dyn BucketClient>> {
    // The library repeats no deletion and nothing whose response was cut.
    let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
    let named = |prefix: &'static str| {
        variables
            .iter()
            .filter(move |(name, _)| name.starts_with(prefix))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.clone()))
    };
    Ok(match location.service {
        BucketService::S3 => {
            let keys = named("AWS_").filter_map(|(name, value)| Some((name.parse().ok()?, value)));
            let builder = keys.fold(AmazonS3Builder::new(), |builder, (key, value)| builder.with_config(key, value));
            let builder = builder.with_bucket_name(&location.bucket).with_client_options(options);
            Arc::new(builder.with_retry(retry).with_http_connector(connector).build()?)
        }
        BucketService::GoogleCloud => {
            let keys = named("GOOGLE_").filter_map(|(name, value)| Some((name.parse().ok()?, value)));
            let new = GoogleCloudStorageBuilder::new();
            let builder = keys.fold(new, |builder, (key, value)| builder.with_config(key, value));
            let builder = builder.with_bucket_name(&location.bucket).with_client_options(options);
            Arc::new(builder.with_retry(retry).with_http_connector(connector).build()?)
        }
        BucketService::Azure => {
            let keys = named("AZURE_").filter_map(|(name, value)| Some((name.parse().ok()?, value)));
            let new = MicrosoftAzureBuilder::new();
            let builder = keys.fold(new, |builder, (key, value)| builder.with_config(key, value));
            let builder = builder.with_container_name(&location.bucket).with_client_options(options);
            Arc::new(builder.with_retry(retry).with_http_connector(connector).build()?)
        }
    })
}

/// Returns the endpoint that a variable names, if the store is not the public service.
fn endpoint_of(service: BucketService, variables: &[(String, String)]) -> Result<Option<EgressUrl>, String> {
    let names: &[&str] = match service {
        BucketService::S3 => &["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"],
        BucketService::GoogleCloud => &["GOOGLE_BASE_URL"],
        BucketService::Azure => &["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"],
    };
    let value = |name: &&str| variables.iter().find(|(other, _)| other == name);
    let Some((name, text)) = names.iter().find_map(value) else { return Ok(None) };
    text.parse().map(Some).map_err(|why: UrlError| format!("environment {name}: {why}"))
}

/// Returns a client that may call public addresses with TLS, and the endpoint.
fn client_for(endpoint: Option<&EgressUrl>) -> Result<EgressClient, String> {
    let mut settings = EgressSettings::default();
    if let Some(endpoint) = endpoint {
        let (ports, purposes) = (vec![PortRange::single(endpoint.port())], vec![EgressPurpose::Backups]);
        let mut entry = AllowEntry { ports, purposes, ..AllowEntry::default() };
        match endpoint.host() {
            UrlHost::Address(address) => entry.cidr = Some(address.to_string()),
            UrlHost::Name(name) => entry.host = Some(name.as_str().to_owned()),
        }
        settings.allow.push(entry);
    }
    let policy = EgressPolicy::new(&settings, OwnEndpoints::default()).map_err(|why| why.to_string())?;
    let roots = TrustedRoots::system().map_err(|why| why.to_string())?;
    Ok(EgressClient::new(EgressConfig::new(roots), policy))
}

fn with_causes(why: &dyn std::error::Error) -> String {
    let mut text = why.to_string();
    let mut cause = why.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text = format!("{text}: {inner_text}");
        }
        cause = inner.source();
    }
    text
}

impl SegmentStore for BucketStore {
    fn put<'a>(&'a self, name: &'a StoredName, mut content: Chunks) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let mut first = BytesMut::new();
            while let Some(chunk) = content.next().await {
                first.extend_from_slice(&chunk?);
                if first.len() > PART_BYTES {
                    return self.put_parts(name, first, content).await;
                }
            }
            let (path, content) = (self.path_of(name.as_str()), first.freeze());
            let bytes = content.len() as u64;
            let content = PutPayload::from_bytes(content);
            let put = repeated(|| self.bucket.put(&path, content.clone())).await;
            put.map_err(|why| self.failed(&format!("writing {name}"), &why))?;
            Ok(bytes)
        })
    }

    fn read<'a>(&'a self, name: &'a StoredName, range: Range<u64>) -> BoxFuture<'a, Result<Bytes, StoreError>> {
        Box::pin(async move {
            let path = self.path_of(name.as_str());
            let wanted = range.end - range.start;
            if wanted == 0 {
                return Ok(Bytes::new());
            }
            let short = || StoreError::Short { location: self.location.clone(), name: name.clone(), end: range.end };
            let get = repeated(|| self.bucket.get_range(&path, range.clone())).await;
            // Services refuse a range behind the end in different ways.
            if let Err(object_store::Error::Generic { .. }) = &get
                && self.length(name).await.is_ok_and(|length| length.is_some_and(|length| length < range.end))
            {
                return Err(short());
            }
            let bytes = self.answered(&format!("reading {name}"), get)?.ok_or_else(|| self.missing(name))?;
            if bytes.len() as u64 == wanted { Ok(bytes) } else { Err(short()) }
        })
    }

    fn length<'a>(&'a self, name: &'a StoredName) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        Box::pin(async move {
            let path = self.path_of(name.as_str());
            let head = self.answered(&format!("looking for {name}"), repeated(|| self.bucket.head(&path)).await)?;
            Ok(head.map(|head| head.size))
        })
    }

    fn list<'a>(
        &'a self,
        directory: &'a str,
        behind: Option<&'a StoredName>,
    ) -> BoxFuture<'a, Result<Vec<StoredObject>, StoreError>> {
        Box::pin(async move {
            let path = self.path_of(directory.trim_end_matches('/'));
            let behind = behind.map(|name| self.path_of(name.as_str()));
            let listed = self.all_below(&path, behind).await;
            let found = self.answered(&format!("listing {directory}"), listed)?.unwrap_or_default();
            // Objects with other names are not ours.
            let named = |object: ObjectMeta| {
                let name = object.location.as_ref().strip_prefix(&self.prefix)?.to_owned();
                Some(StoredObject { name: StoredName::new(name).ok()?, bytes: object.size })
            };
            let mut found: Vec<_> = found.into_iter().filter_map(named).collect();
            found.sort();
            // Some services begin a page with the object that it should be behind.
            found.dedup();
            Ok(found)
        })
    }

    fn delete<'a>(&'a self, name: &'a StoredName) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            let path = self.path_of(name.as_str());
            let deleted = repeated(|| self.bucket.delete(&path)).await;
            self.answered(&format!("deleting {name}"), deleted).map(drop)
        })
    }

    fn remove_leftovers(&self) -> BoxFuture<'_, Result<usize, StoreError>> {
        Box::pin(async { Ok(0) })
    }

    fn location(&self) -> String {
        self.location.clone()
    }
}
