//! Serves the scripted providers for clients in other languages: prints the origin and serves until it is stopped.

use assay_test_providers::ProviderServer;

fn main() -> anyhow::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".into());
    let server = ProviderServer::start_on(&address)?;
    println!("{}", server.origin());
    loop {
        std::thread::park();
    }
}
