//! How writes fold into rows: pure functions over documents.
