//! Master key for tests: it reverses the wrapped bytes, so that a test can tell whether something was wrapped.

use assay_cluster::KeyWrap;

#[derive(Debug)]
pub struct Keys(pub &'static str);

impl KeyWrap for Keys {
    fn make(&self) -> Result<(), String> {
        Ok(())
    }

    fn ids(&self) -> Vec<String> {
        vec![self.0.to_owned()]
    }

    fn wrap(&self, label: &str, plain: &str) -> Result<String, String> {
        Ok(format!("{}|{label}|{}", self.0, plain.chars().rev().collect::<String>()))
    }

    fn unwrap(&self, label: &str, wrapped: &str) -> Result<String, String> {
        let text = wrapped.strip_prefix(&format!("{}|{label}|", self.0)).ok_or("wrapped by or for something else")?;
        Ok(text.chars().rev().collect())
    }

    fn id_of(&self, wrapped: &str) -> Option<String> {
        wrapped.split('|').next().map(str::to_owned)
    }
}
