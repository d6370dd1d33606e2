//! Catalog for consensus and readers: one state behind a lock, backed by one store.
//!
//! Locks are taken in the order `place`, then `state`. `place` allows one seal or install at a time. `state` is held
//! briefly and never during a write to the disk.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use assay_storage_disk::SharedDisk;
use assay_storage_kv::Kv;
use assay_storage_model::catalog::CatalogCommand;
use assay_storage_model::command::Outcome;
use assay_storage_model::entry::Entry;
use assay_storage_model::{Applied, LogPosition};
use bytes::Bytes;
use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use crate::error::CatalogError;
use crate::export::{Export, export, import};
use crate::home::Home;
use crate::state::{State, StoredValue};
use crate::stored::{Header, Name, Stored};

#[derive(Clone, Debug)]
pub struct CatalogConfig {
    pub disk: SharedDisk,
    pub dir: PathBuf,
    /// Upper bound of the memory that the store uses for its pages.
    pub kv_cache_bytes: u64,
}

#[derive(Debug)]
pub struct Catalog {
    state: RwLock<State>,
    place: Mutex<CatalogDir>,
    sealed: Mutex<Applied>,
    /// Flag of a failed seal or install, after which the content of the store is unknown until it is opened again.
    failed: AtomicBool,
}

/// Store in use and its location.
#[derive(Debug)]
struct CatalogDir {
    stored: Stored,
    /// Directory and generation, or `None` if the store was given and must not be replaced.
    home: Option<(Home, u32)>,
}

impl Catalog {
    /// Loads and verifies the last sealed state.
    pub fn open(config: CatalogConfig) -> Result<Arc<Catalog>, CatalogError> {
        let home = Home::new(config.disk, config.dir, config.kv_cache_bytes);
        let current = home.current()?;
        let generation = match current {
            Some(generation) => generation,
            None => home.first()?,
        };
        let kv = home.open_kv(generation)?;
        if current.is_some() && kv.entries() == 0 {
            return Err(home.damaged(generation, "it is in use but empty".into()));
        }
        let (stored, state) = Stored::open(kv)?.map_err(|what| home.damaged(generation, what))?;
        if current.is_none() {
            if state.applied.is_some() {
                return Err(home.missing_but_used());
            }
            home.switch(generation)?;
        }
        home.keep_only(generation)?;
        tracing::debug!(dir = %home.dir().display(), records = state.records(), "catalog open");
        Ok(Catalog::new(stored, state, Some((home, generation))))
    }

    /// Opens the catalog on an existing store, for tests and simulations.
    pub fn open_on(kv: Arc<dyn Kv>) -> Result<Arc<Catalog>, CatalogError> {
        let (stored, state) =
            Stored::open(kv)?.map_err(|what| CatalogError::Damaged { path: "the catalog's store".into(), what })?;
        Ok(Catalog::new(stored, state, None))
    }

    fn new(stored: Stored, state: State, home: Option<(Home, u32)>) -> Arc<Catalog> {
        let sealed = Mutex::new(applied_of(&state));
        let place = Mutex::new(CatalogDir { stored, home });
        Arc::new(Catalog { state: RwLock::new(state), place, sealed, failed: AtomicBool::new(false) })
    }

    /// Returns a consistent view. Changes wait while it is held, so it must be held briefly and never across an await.
    pub fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    /// Returns the applied position in memory, which is ahead of the sealed one.
    pub fn applied(&self) -> Applied {
        applied_of(&self.state.read())
    }

    /// Returns the position up to which the state is durable without the log.
    pub fn sealed(&self) -> Applied {
        self.sealed.lock().clone()
    }

    /// Applies the commands of one entry, which become visible together. An error means that this replica is damaged.
    pub fn apply(&self, position: LogPosition, entry: &Bytes) -> Result<Vec<Outcome>, CatalogError> {
        let commands = match Entry::decode(entry) {
            Ok(Entry::Commands(commands)) => commands,
            Ok(Entry::Blob { .. }) => return Err(CatalogError::BlobEntry(position)),
            Err(source) => return Err(CatalogError::Entry { position, source }),
        };
        let commands: Result<Vec<_>, _> = commands.iter().map(|bytes| CatalogCommand::decode(bytes)).collect();
        let commands = commands.map_err(|source| CatalogError::Command { position, source })?;
        let mut state = self.state.write();
        advance(&mut state, position)?;
        Ok(commands.into_iter().map(|command| Outcome::Catalog(state.apply(command))).collect())
    }

    pub fn apply_blank(&self, position: LogPosition) -> Result<(), CatalogError> {
        advance(&mut self.state.write(), position)
    }

    pub fn apply_membership(&self, position: LogPosition, membership: &[u8]) -> Result<(), CatalogError> {
        let mut state = self.state.write();
        advance(&mut state, position)?;
        state.membership = membership.to_vec();
        Ok(())
    }

    /// Returns the approximate number of bytes that a seal would write.
    pub fn memory_bytes(&self) -> usize {
        self.state.read().dirty_bytes
    }

    /// Writes the changes since the last seal. Later changes wait for the next seal.
    pub fn seal(&self) -> Result<Applied, CatalogError> {
        let mut place = self.place.lock();
        self.refuse_if_failed()?;
        let (applied, header, changes) = {
            let mut state = self.state.write();
            let applied = applied_of(&state);
            if state.dirty.is_empty() && applied == *self.sealed.lock() {
                return Ok(applied);
            }
            state.dirty_bytes = 0;
            let dirty = std::mem::take(&mut state.dirty);
            let names = dirty.into_iter().chain([Name::Membership]);
            let changes: Vec<_> = names.map(|name| (name, state.kept(&name))).collect();
            (applied, Header::of(&state), changes)
        };
        let changes = changes.into_iter().map(|(name, kept)| (name, kept.map(StoredValue::encode))).collect();
        self.failing(place.stored.write(header, changes).map_err(CatalogError::from))?;
        *self.sealed.lock() = applied.clone();
        Ok(applied)
    }

    /// Exports the whole state as of `applied`, which may be ahead of the sealed one.
    pub fn export(&self) -> Result<Export, CatalogError> {
        export(&self.state.read())
    }

    /// Checks whether [`Catalog::install`] can take an export of another replica, and changes nothing.
    pub fn check_export(bytes: &[u8]) -> Result<(), CatalogError> {
        import(bytes).map(drop)
    }

    /// Replaces the state with the export of another replica.
    ///
    /// The new state is durable when this returns. A crash leaves the old state or the new one as a whole. No entries
    /// may be applied meanwhile.
    pub fn install(&self, bytes: &[u8]) -> Result<Applied, CatalogError> {
        let import = import(bytes)?;
        let mut place = self.place.lock();
        self.refuse_if_failed()?;
        let applied = applied_of(&import.state);
        self.failing(install_on(&mut place, import.header, import.values))?;
        *self.state.write() = import.state;
        *self.sealed.lock() = applied.clone();
        if let Some((home, generation)) = &place.home {
            self.failing(home.keep_only(*generation))?;
        }
        Ok(applied)
    }

    /// Replaces the state with an empty catalog, for a copy that others fill again.
    ///
    /// The empty state is durable when this returns. No entries may be applied meanwhile.
    pub fn clear(&self) -> Result<(), CatalogError> {
        self.install(&export(&State::empty())?.bytes).map(drop)
    }

    fn refuse_if_failed(&self) -> Result<(), CatalogError> {
        if self.failed.load(Ordering::Acquire) { Err(CatalogError::Failed) } else { Ok(()) }
    }

    fn failing<T>(&self, result: Result<T, CatalogError>) -> Result<T, CatalogError> {
        if result.is_err() {
            self.failed.store(true, Ordering::Release);
        }
        result
    }
}

fn install_on(place: &mut CatalogDir, header: Header, values: Vec<(Name, Vec<u8>)>) -> Result<(), CatalogError> {
    let Some((home, generation)) = &mut place.home else {
        return Ok(place.stored.replace(header, values)?);
    };
    let next = home.next(*generation)?;
    let opened = Stored::open(home.open_kv(next)?)?;
    let (mut stored, _) = opened.map_err(|what| home.damaged(next, what))?;
    stored.fill(header, values)?;
    home.switch(next)?;
    *generation = next;
    place.stored = stored;
    Ok(())
}

fn applied_of(state: &State) -> Applied {
    Applied { position: state.applied, membership: state.membership.clone() }
}

fn advance(state: &mut State, found: LogPosition) -> Result<(), CatalogError> {
    match state.applied {
        Some(applied) if applied.index.checked_add(1) != Some(found.index) => {
            Err(CatalogError::OutOfOrder { applied, found })
        }
        _ => {
            state.applied = Some(found);
            Ok(())
        }
    }
}
